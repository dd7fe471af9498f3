"""Makes pytest explain failed assertions in the modules that hold checks, which load after this one."""

import pytest

pytest.register_assert_rewrite(
    *(
        f"deepagents.testing.contract.{module}"
        for module in (
            "allowing",
            "appending",
            "base",
            "changing",
            "editing",
            "naming",
            "reading",
            "searching",
        )
    )
)
