"""Milliseconds to import an agent factory and look at it."""

import sys
import time

factory = sys.argv[1]
start = time.perf_counter()
if factory == "create_agent":
    from langchain.agents import create_agent as found
else:
    import deepagents

    found = deepagents.create_deep_agent
spent = time.perf_counter() - start
assert callable(found)
print(f'{{"import": {spent * 1000}}}')
