"""Ask for an answer that fits a JSON Schema, for programs: `--schema FILE`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware, hook_config

from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.project.hooks import count_sent_back, send_back

_TRIES: Final = 3
_BY_SCHEMA: Final = "schema"


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """Read a schema, with a title by which models know it; without a path there is none.

    Raises:
        CommandError: naming file and place of what is wrong.
    """
    if path is None:
        return None
    import jsonschema_rs

    try:
        schema: Any = json.loads(path.read_text("utf-8"))
        if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
            raise ValueError('an answer is an object: write "type": "object" at the top')
        found = cast("dict[str, Any]", schema)
        _validator(found)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(map(str, ["", *error.instance_path])) or "/"
        raise CommandError(f"--schema {path}: at {place}: {error.message}", Exit.USAGE) from error
    except OSError as error:
        raise CommandError(f"--schema {path}: {error.strerror}", Exit.USAGE) from error
    # Brackets nested without end are not a schema either.
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--schema {path}: {error}", Exit.USAGE) from error
    title = re.sub(r"[^\w-]+", "_", str(found.get("title") or ""), flags=re.ASCII).strip("_")
    return {**found, "title": title[:60] or "Answer"}


def fits(answer: Any, schema: dict[str, Any]) -> bool:
    """Return whether an answer fits a schema."""
    return _validator(schema).is_valid(answer)


class FitAnswer(AgentMiddleware[Any, Any, Any]):
    """Lets the agent try again a few times while its answer does not fit."""

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__()
        self._validator = _validator(schema)

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Check the answer."""
        problem = self._problem(state.get("structured_response"))
        if problem is None or count_sent_back(state["messages"], _BY_SCHEMA) >= _TRIES:
            return None
        return send_back(problem, _BY_SCHEMA)

    def _problem(self, answer: Any) -> str | None:
        if answer is None:
            return "Give your answer in the form that was asked for."
        error = next(iter(self._validator.iter_errors(answer)), None)
        if error is None:
            return None
        place = "/".join(map(str, ["", *error.instance_path])) or "/"
        return f"The answer does not fit the schema at {place}: {error.message}. Give it again."


def _validator(schema: dict[str, Any]) -> Any:
    # Most tasks have no schema.
    import jsonschema_rs

    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.validator_for(schema, retriever=refuse)


def refuse(uri: str) -> Any:
    """Refuse to fetch a part of a schema, which gives no reason to reach a host."""
    raise ValueError(f"{uri} is not fetched; put it below $defs")
