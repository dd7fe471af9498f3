"""A story for each call of LangGraph's Python client, for the blocking client and the other one alike."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from uuid import uuid4

Story = Callable[[Any], Awaitable[object]]
STORIES: dict[str, Story] = {}
PARTS = ("assistants", "threads", "runs", "crons", "store")


def methods(client: Any) -> set[str]:
    """Return the public methods of a client."""
    return {
        f"{part}.{name}"
        for part in PARTS
        for name, _ in inspect.getmembers(type(getattr(client, part)), callable)
        if not name.startswith("_")
    }


def story(name: str) -> Callable[[Story], Story]:
    def keep(function: Story) -> Story:
        STORIES[name] = function
        return function

    return keep


def say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def done(call: Any) -> Any:
    """Return what a call of either client gives."""
    return await call if inspect.isawaitable(call) else call


async def parts(call: Any) -> list[Any]:
    """Return what a stream of either client gives."""
    stream = await done(call)
    if not hasattr(stream, "__aiter__"):
        return list(stream)
    return [part async for part in stream]


async def thread_with(client: Any, *texts: str) -> str:
    thread = str((await done(client.threads.create()))["thread_id"])
    for text in texts:
        await done(client.runs.wait(thread, "echo", input=say(text)))
    return thread


async def assistant(client: Any, **about: Any) -> Any:
    return await done(client.assistants.create("echo", name="mine", **about))


@story("assistants.create")
async def _(client: Any) -> None:
    assert (await assistant(client))["version"] == 1


@story("assistants.get")
async def _(client: Any) -> None:
    made = await assistant(client)
    assert (await done(client.assistants.get(made["assistant_id"])))["name"] == "mine"


@story("assistants.update")
async def _(client: Any) -> None:
    made = await assistant(client)
    assert (await done(client.assistants.update(made["assistant_id"], name="ours")))["version"] == 2


@story("assistants.delete")
async def _(client: Any) -> None:
    made = await assistant(client)
    await done(client.assistants.delete(made["assistant_id"]))


@story("assistants.search")
async def _(client: Any) -> None:
    mark = str(uuid4())
    await assistant(client, metadata={"mark": mark})
    assert len(await done(client.assistants.search(metadata={"mark": mark}))) == 1


@story("assistants.count")
async def _(client: Any) -> None:
    mark = str(uuid4())
    await assistant(client, metadata={"mark": mark})
    assert await done(client.assistants.count(metadata={"mark": mark})) == 1


@story("assistants.get_versions")
async def _(client: Any) -> None:
    made = (await assistant(client))["assistant_id"]
    await done(client.assistants.update(made, name="ours"))
    found = await done(client.assistants.get_versions(made))
    assert [each["version"] for each in found] == [2, 1]


@story("assistants.set_latest")
async def _(client: Any) -> None:
    made = (await assistant(client))["assistant_id"]
    await done(client.assistants.update(made, name="ours"))
    assert (await done(client.assistants.set_latest(made, 1)))["name"] == "mine"


@story("assistants.get_graph")
async def _(client: Any) -> None:
    made = (await assistant(client))["assistant_id"]
    assert (await done(client.assistants.get_graph(made)))["nodes"]


@story("assistants.get_schemas")
async def _(client: Any) -> None:
    # The state of `echo` has no schema before Python 3.12.
    made = (await done(client.assistants.search(graph_id="digger")))[0]["assistant_id"]
    assert (await done(client.assistants.get_schemas(made)))["input_schema"]


@story("assistants.get_subgraphs")
async def _(client: Any) -> None:
    made = (await done(client.assistants.search(graph_id="outer")))[0]["assistant_id"]
    assert "inner" in await done(client.assistants.get_subgraphs(made))


@story("threads.create")
async def _(client: Any) -> None:
    wanted = str(uuid4())
    await done(client.threads.create(thread_id=wanted))
    again = await done(client.threads.create(thread_id=wanted, if_exists="do_nothing"))
    assert again["thread_id"] == wanted


@story("threads.get")
async def _(client: Any) -> None:
    thread = await thread_with(client, "hello")
    assert (await done(client.threads.get(thread)))["status"] == "idle"


@story("threads.update")
async def _(client: Any) -> None:
    thread = await thread_with(client)
    assert (await done(client.threads.update(thread, metadata={"a": 1})))["metadata"]["a"] == 1


@story("threads.delete")
async def _(client: Any) -> None:
    await done(client.threads.delete(await thread_with(client, "hello")))


@story("threads.search")
async def _(client: Any) -> None:
    mark = str(uuid4())
    await done(client.threads.create(metadata={"mark": mark}))
    assert len(await done(client.threads.search(metadata={"mark": mark}))) == 1


@story("threads.count")
async def _(client: Any) -> None:
    mark = str(uuid4())
    await done(client.threads.create(metadata={"mark": mark}))
    assert await done(client.threads.count(metadata={"mark": mark})) == 1


@story("threads.copy")
async def _(client: Any) -> None:
    copied = await done(client.threads.copy(await thread_with(client, "hello")))
    held = await done(client.threads.get_state(copied["thread_id"]))
    assert len(held["values"]["messages"]) == 2


@story("threads.get_state")
async def _(client: Any) -> None:
    held = await done(client.threads.get_state(await thread_with(client, "hello")))
    assert held["values"]["messages"][-1]["content"] == "Echo: hello"


@story("threads.update_state")
async def _(client: Any) -> None:
    thread = await thread_with(client, "hello")
    await done(client.threads.update_state(thread, say("said later")))
    held = await done(client.threads.get_state(thread))
    assert held["values"]["messages"][-1]["content"] == "said later"


@story("threads.get_history")
async def _(client: Any) -> None:
    thread = await thread_with(client, "hello")
    newest = await done(client.threads.get_history(thread, limit=2))
    before = await done(client.threads.get_history(thread, before=newest[0]["checkpoint"]))
    assert before[0]["checkpoint_id"] == newest[1]["checkpoint_id"]


@story("threads.prune")
async def _(client: Any) -> None:
    thread = await thread_with(client, "one", "two")
    await done(client.threads.prune([thread], strategy="keep_latest"))
    assert len(await done(client.threads.get_history(thread))) == 1


@story("threads.join_stream")
async def _(client: Any) -> None:
    thread = await thread_with(client)
    run = client.runs.create(thread, "echo", input=say("hello"), stream_resumable=True)
    run_id = (await done(run))["run_id"]
    stream = await done(client.threads.join_stream(thread, last_event_id="0-0"))
    async with aclosing(_each(stream)) as events:
        async for part in events:
            if part.event == "metadata" and part.data.get("status") == "run_done":
                assert part.data["run_id"] == run_id
                return


async def _each(stream: Any) -> AsyncGenerator[Any]:
    if hasattr(stream, "__aiter__"):
        async with aclosing(stream):
            async for part in stream:
                yield part
        return
    try:
        for part in stream:
            yield part
    finally:
        stream.close()


@story("threads.stream")
async def _(client: Any) -> None:
    opened = client.threads.stream(assistant_id="echo")
    if hasattr(opened, "__aenter__"):
        async with opened as thread:
            await thread.run.start(input=say("hello"))
            left = await thread.output
    else:
        with opened as thread:
            thread.run.start(input=say("hello"))
            left = thread.output
    assert left["messages"][-1]["content"] == "Echo: hello"


@story("runs.create")
async def _(client: Any) -> None:
    made = await done(client.runs.create(await thread_with(client), "echo", input=say("hello")))
    await done(client.runs.join(made["thread_id"], made["run_id"]))


@story("runs.create_batch")
async def _(client: Any) -> None:
    both = [{"assistant_id": "echo", "input": say(text)} for text in ("one", "two")]
    assert len(await done(client.runs.create_batch(both))) == 2


@story("runs.wait")
async def _(client: Any) -> None:
    left = await done(client.runs.wait(None, "echo", input=say("hello")))
    assert left["messages"][-1]["content"] == "Echo: hello"


@story("runs.join")
async def _(client: Any) -> None:
    made = await done(client.runs.create(await thread_with(client), "echo", input=say("hello")))
    left = await done(client.runs.join(made["thread_id"], made["run_id"]))
    assert left["messages"][-1]["content"] == "Echo: hello"


@story("runs.stream")
async def _(client: Any) -> None:
    modes: Any = ["values", "messages-tuple", "updates", "custom"]
    seen = await parts(client.runs.stream(None, "echo", input=say("progress half"), stream_mode=modes))
    assert {"metadata", "values", "messages", "updates", "custom"} <= {part.event for part in seen}


@story("runs.join_stream")
async def _(client: Any) -> None:
    thread = await thread_with(client)
    modes: Any = ["values", "updates"]
    made = await done(
        client.runs.create(thread, "echo", input=say("hello"), stream_resumable=True, stream_mode=modes)
    )
    stream = client.runs.join_stream(thread, made["run_id"], stream_mode=modes, last_event_id="-1")
    assert {"values", "updates"} <= {part.event for part in await parts(stream)}


@story("runs.get")
async def _(client: Any) -> None:
    made = await done(client.runs.create(await thread_with(client), "echo", input=say("hello")))
    await done(client.runs.join(made["thread_id"], made["run_id"]))
    assert (await done(client.runs.get(made["thread_id"], made["run_id"])))["status"] == "success"


@story("runs.list")
async def _(client: Any) -> None:
    thread = await thread_with(client, "one", "two")
    assert len(await done(client.runs.list(thread, limit=5))) == 2


@story("runs.cancel")
async def _(client: Any) -> None:
    thread = await thread_with(client)
    made = await done(client.runs.create(thread, "echo", input=say(f"wait {uuid4()}")))
    await done(client.runs.cancel(thread, made["run_id"], wait=True))
    assert (await done(client.runs.get(thread, made["run_id"])))["status"] == "interrupted"


@story("runs.cancel_many")
async def _(client: Any) -> None:
    thread = await thread_with(client)
    made = await done(client.runs.create(thread, "echo", input=say(f"wait {uuid4()}")))
    await done(client.runs.cancel_many(thread_id=thread, run_ids=[made["run_id"]]))
    await done(client.runs.join(thread, made["run_id"]))


@story("runs.delete")
async def _(client: Any) -> None:
    thread = await thread_with(client, "hello")
    (run,) = await done(client.runs.list(thread))
    await done(client.runs.delete(thread, run["run_id"]))
    assert await done(client.runs.list(thread)) == []


async def cron(client: Any) -> Any:
    return await done(client.crons.create("echo", schedule="0 0 1 1 *", input=say("hello")))


@story("crons.create")
async def _(client: Any) -> None:
    await done(client.crons.delete((await cron(client))["cron_id"]))


@story("crons.create_for_thread")
async def _(client: Any) -> None:
    thread = await thread_with(client, "hello")
    made = await done(client.crons.create_for_thread(thread, "echo", schedule="0 0 1 1 *", input=say("hi")))
    await done(client.crons.delete(made["cron_id"]))


@story("crons.update")
async def _(client: Any) -> None:
    made = (await cron(client))["cron_id"]
    changed = await done(client.crons.update(made, schedule="0 0 2 1 *"))
    await done(client.crons.delete(made))
    assert changed["schedule"] == "0 0 2 1 *"


@story("crons.search")
async def _(client: Any) -> None:
    made = (await cron(client))["cron_id"]
    found = await done(client.crons.search(limit=100))
    await done(client.crons.delete(made))
    assert made in [each["cron_id"] for each in found]


@story("crons.count")
async def _(client: Any) -> None:
    made = (await cron(client))["cron_id"]
    counted = await done(client.crons.count())
    await done(client.crons.delete(made))
    assert counted >= 1


@story("crons.delete")
async def _(client: Any) -> None:
    await done(client.crons.delete((await cron(client))["cron_id"]))


async def put(client: Any) -> list[str]:
    place = ["notes", str(uuid4())]
    await done(client.store.put_item(place, "tide", {"height": 3}))
    return place


@story("store.put_item")
async def _(client: Any) -> None:
    await put(client)


@story("store.get_item")
async def _(client: Any) -> None:
    assert (await done(client.store.get_item(await put(client), "tide")))["value"] == {"height": 3}


@story("store.delete_item")
async def _(client: Any) -> None:
    await done(client.store.delete_item(await put(client), "tide"))


@story("store.search_items")
async def _(client: Any) -> None:
    found = await done(client.store.search_items(await put(client), filter={"height": 3}))
    assert len(found["items"]) == 1


@story("store.list_namespaces")
async def _(client: Any) -> None:
    place = await put(client)
    assert place in (await done(client.store.list_namespaces(prefix=place)))["namespaces"]
