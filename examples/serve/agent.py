"""An agent for `make serve`: the model of DEEPAGENTS_MODEL, or else a small one on this machine."""

import os

from deepagents import create_deep_agent

agent = create_deep_agent(os.environ.get("DEEPAGENTS_MODEL") or "local:")
