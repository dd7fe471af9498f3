"""Add, list, remove and try the MCP servers of a person and of a project: `deepagents mcp`."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepagents_cli.commands.options import add_debug, read_directory, say
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.text import one_line

with imported_when_run():
    from deepagents_cli.project import project, servers, settings, settings_file, setup
    from deepagents_cli.session.workplace import confined
    from deepagents_cli.session.workplace import servers as opened

_EXAMPLES = """examples:
  deepagents mcp add clock -- uvx mcp-server-time
  deepagents mcp add tickets https://tickets.example/mcp --header 'Authorization: Bearer ${TICKETS_TOKEN}'
  deepagents mcp test clock
"""


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "mcp",
        help="add, list, remove and try MCP servers, whose tools the agent has",
        description="Add, list, remove and try MCP servers, whose tools the agent has.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="write a server into your settings; one of that name is replaced")
    add.add_argument("name", metavar="NAME", help="what it is called here")
    add.add_argument("target", nargs="+", metavar="URL|COMMAND", help="its address; or -- and its command")
    for name, metavar, text in (
        ("env", "NAME=VALUE", "a variable for its process, such as KEY='${KEY}' for one that is set"),
        ("header", "'NAME: VALUE'", "a header of each request to it"),
    ):
        text = f"{text}; may be repeated"
        add.add_argument(f"--{name}", action="append", default=[], metavar=metavar, help=text)
    add.add_argument("--type", choices=("stdio", "http", "sse"), help="how it is reached, if not as written")
    remove = actions.add_parser("remove", help="take a server out of your settings")
    remove.add_argument("name", metavar="NAME", help="what it is called here")
    for action in (add, remove):
        action.add_argument(
            "--project", action="store_true", help="in .mcp.json of the directory, for all who work on it"
        )
    listing = actions.add_parser("list", help="list the servers of a directory, and what they wait for")
    test = actions.add_parser("test", help="start servers, and list their tools; code 1 if one fails")
    test.add_argument("name", nargs="?", metavar="NAME", help="one of them (default: all)")
    for action in (add, remove, listing, test):
        action.add_argument("--dir", default=".", metavar="DIR", help="the directory (default: .)")
        add_debug(action)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what was asked; return the exit code."""
    directory = read_directory(arguments.dir)
    match arguments.action:
        case "add":
            return _add(arguments, directory)
        case "remove":
            path = _path_of(arguments, directory)
            if not settings_file.change_server(path, arguments.name, None):
                raise CommandError(f"there is no server {arguments.name!r} in {path}", Exit.USAGE)
            return say(f"{arguments.name} is removed from {path}")
        case "list":
            return _list(setup.load_setup(project.Project(directory, Path.home())))
        case _:
            return _test(setup.load_setup(project.Project(directory, Path.home())), arguments.name)


def _add(arguments: Namespace, directory: Path) -> int:
    path, entry = _path_of(arguments, directory), _entry_of(arguments)
    made = servers.Server(arguments.name, entry, path, "project" if arguments.project else "person")
    is_usable, problems = servers.check(made)
    # A variable that is not set here may be set where the server is used.
    if not is_usable and not any("environment variable" in each for each in problems):
        raise CommandError("; ".join(problems).removesuffix("; it is not used"), Exit.USAGE)
    for problem in problems:
        complain(problem)
    settings_file.change_server(path, made.name, entry)
    way = f"; to use it: deepagents trust {directory}" if arguments.project else ""
    return say(f"{made.name} is written into {path}{way}")


def _path_of(arguments: Namespace, directory: Path) -> Path:
    return directory / servers.FILE if arguments.project else settings.user_file(Path.home())


def _entry_of(arguments: Namespace) -> dict[str, Any]:
    first, *rest = arguments.target
    if first.startswith(("http://", "https://")):
        if rest:
            raise CommandError(f"behind the address stands {rest[0]!r}; leave it out", Exit.USAGE)
        entry: dict[str, Any] = {"url": first}
    else:
        entry = {"command": first, **({"args": rest} if rest else {})}
    entry |= {"type": arguments.type} if arguments.type else {}
    for key, given, mark in (("env", arguments.env, "="), ("headers", arguments.header, ":")):
        if given:
            entry[key] = dict(_split(each, mark) for each in given)
    return entry


def _split(given: str, mark: str) -> tuple[str, str]:
    name, found, value = given.partition(mark)
    if not found or not name.strip():
        # Not the value, which may be a secret.
        raise CommandError(f"{name!r} has no {mark!r} behind it; write NAME{mark}VALUE", Exit.USAGE)
    return name.strip(), value.strip()


def _list(found: setup.Setup) -> int:
    for notice in found.notices:
        complain(notice)
    waiting = [] if found.trusted else [each for each in found.items if each.kind == "server"]
    for each in found.servers.values():
        sys.stdout.write(f"{one_line(each.name)}  {one_line(each.describe().splitlines()[0])}  {each.path}\n")
    for item in waiting:
        sys.stdout.write(f"{one_line(item.name)}  {one_line(item.what.splitlines()[0])}  waits for trust\n")
    if waiting:
        return say(f"See what they are, and use them: deepagents trust {found.project.directory}")
    return Exit.DONE if found.servers else say("There are no servers here; deepagents mcp add adds one.")


def _test(found: setup.Setup, name: str | None) -> int:
    chosen: Mapping[str, servers.Server] = found.servers if name is None else _one(found, name)
    if not chosen:
        return _list(found)
    given = found.settings
    access = confined.access_for(found.project.directory, given.network, given.read, given.write)
    with opened.open_servers(chosen, given.confined_servers, access) as running:
        tools = running.tools()
        for each in running.status().values():
            sys.stdout.write(f"{one_line(each.name)}  {one_line(opened.describe_state(each))}\n")
            for tool in opened.tools_of(tools, each.name):
                sys.stdout.write(f"  {one_line(tool.name)}  {one_line(tool.description)}\n")
        is_ready = all(each.status in ("ready", "stopped") for each in running.status().values())
    return Exit.DONE if is_ready else Exit.FAILED


def _one(found: setup.Setup, name: str) -> Mapping[str, servers.Server]:
    if name not in found.servers:
        waits = not found.trusted and any(item.name == name for item in found.items if item.kind == "server")
        way = f"; it waits: deepagents trust {found.project.directory}" if waits else ""
        raise CommandError(f"there is no server {name!r} to try{way}", Exit.USAGE)
    return {name: found.servers[name]}
