"""Let pytest explain failed assertions in the modules that hold checks, which load after this one."""

import pytest

for module in ("allowing", "base", "changing", "editing", "naming", "reading", "searching"):
    pytest.register_assert_rewrite(f"deepagents.testing.contract.{module}")
