"""The handlers of `langgraph_sdk.Auth` with which a server of the tests asks who calls."""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth

auth = Auth()
LOCKED = "10c4ed00-0000-4000-8000-000000000000"
"""A thread on which nobody may run anything."""
ORGANISATIONS = {"ann": "red", "ben": "red", "cid": "blue"}


@auth.authenticate
async def authenticate(authorization: str | None, headers: dict[bytes, bytes], path: str) -> Any:
    name = (authorization or "").removeprefix("Bearer ")
    match name:
        case "fails":
            raise ValueError(f"secret of {path}")
        case "asserts":
            raise AssertionError("secret")
        case "splits":
            given = {"x-why": "one\r\nx-more: two", "x-else": "fine"}
            raise Auth.exceptions.HTTPException(status_code=402, detail="Pay first", headers=given)
        case "nameless":
            return {"identity": "", "org": "red"}
        case "everybody":
            return {"identity": "*", "org": "red"}
        case _ if name in ORGANISATIONS:
            return {"identity": name, "org": ORGANISATIONS[name], "token": "secret"}
        case _:
            raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")


@auth.on.threads
async def share_threads(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    mine = {"org": ctx.user["org"]}
    value.setdefault("metadata", {}).update(mine)
    return mine


@auth.on.threads.create_run
async def keep_out(ctx: Auth.types.AuthContext, value: Any) -> Any:
    assert str(value.get("thread_id")) != LOCKED, "secret"
    assert value["assistant_id"] != "gate", "secret"
    return await share_threads(ctx=ctx, value=value)


@auth.on.threads.delete
async def keep_threads(ctx: Auth.types.AuthContext, value: Any) -> Any:
    return ctx.user.identity == "ann"


@auth.on.crons
async def refuse_schedules(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    assert ctx.user.identity == "ann", "secret"


@auth.on.store
async def sort_items(ctx: Auth.types.AuthContext, value: Any) -> None:
    if value.get("key") == "fails":
        raise RuntimeError("secret")
    value["namespace"] = ("sorted", *(value["namespace"] or ()))
