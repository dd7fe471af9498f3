"""Describe an endpoint as a value, of which routes, checks, documents and questions to `auth` are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, field
from typing import Any, Final, Literal

from pydantic import BaseModel, RootModel
from starlette.requests import Request
from starlette.routing import BaseRoute, Route, WebSocketRoute

from deepagents._values import valueclass
from deepagents_server.api.access import Asks, decides, permit
from deepagents_server.api.bodies import check_body, read_json
from deepagents_server.api.common import nothing, serving
from deepagents_server.api.parameters import Parameter, read_path
from deepagents_server.errors import ServeError

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "WEBSOCKET"]


@valueclass
class Answer:
    """What comes back when all is well: media types, and the status."""

    types: tuple[str, ...] = ("application/json",)
    status: str = "200"


JSON: Final = Answer()
STREAM: Final = Answer(("text/event-stream",))
JSON_OR_STREAM: Final = Answer((*JSON.types, *STREAM.types))
PAGE: Final = Answer(("text/html",))
DONE: Final = Answer((), "204")


@valueclass
class Endpoint:
    """What a path and a method do, and all that is true of it.

    Args:
        path: its pattern; `{name}` stands for a text without a slash.
        method: of HTTP; `WEBSOCKET` for a connection, whose handler gets the socket alone.
        handler: its code, whose docstring documents show. It gets the server as far as its caller may see it
            (the request, if it asks `"nothing"`), then the body if there is one, and by name what path, query
            and header hold; what a client left out is left out. `None` is an answer without a body.
        asks: the resource and the action that handlers of `auth` decide about before it answers. `"nothing"`
            if it shows what belongs to no caller, `"itself"` if it asks by `ask_handlers` for what it does.
            Where there are API keys, each endpoint needs one but those that `gate` names.
        also_asks: a second question, about something new of which nothing is known yet.
        body: the model that it is checked by; or only a schema, and the handler checks body and path.
        needs_body: whether nothing is refused, where else it stands for an empty object.
        query: what its query may hold.
        header: one that it reads.
        answer: what comes back.
    """

    path: str
    method: Method
    handler: Callable[..., Awaitable[Any]]
    asks: Asks | Literal["nothing", "itself"] | None = None
    _: KW_ONLY
    also_asks: Asks | None = None
    body: type[BaseModel] | Mapping[str, Any] | None = None
    needs_body: bool = False
    query: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    header: str | None = None
    answer: Answer = JSON

    def __post_init__(self) -> None:
        """Refuse an endpoint that does not say who may use it; a guess might let too many in."""
        if self.asks is None:
            raise ServeError(
                f"The endpoint {self.name} does not say what handlers of auth are asked: give it "
                'asks=(RESOURCE, ACTION), such as ("threads", "read"); or asks="nothing", if what it shows '
                "belongs to no caller."
            )

    @property
    def name(self) -> str:
        """Return the method and the path."""
        return f"{self.method} {self.path}"

    @property
    def several(self) -> bool:
        """Tell whether the body is a list, about each part of which handlers are asked."""
        return isinstance(self.body, type) and issubclass(self.body, RootModel)

    async def respond(self, request: Request) -> Any:
        """Ask the handlers of `auth`, check what is given, and let the handler answer.

        Raises:
            ApiError: if the caller may not, or gives what has no such form.
        """
        request, read = await self.permit(request)
        given = request if self.asks == "nothing" else serving(request)
        if isinstance(self.body, Mapping):
            return await self.handler(given, read, **request.path_params)
        body = [check_body(self.body, read, needed=self.needs_body)] if self.body else []
        named: dict[str, Any] = {**read_path(request.path_params)}
        query = request.query_params
        named |= {key: each.read(key, query.getlist(key)) for key, each in self.query.items() if key in query}
        if self.header and (sent := request.headers.get(self.header)) is not None:
            named[self.header.replace("-", "_")] = sent
        return await self.handler(given, *body, **named) or nothing()

    async def permit(self, request: Request) -> tuple[Request, Any]:
        """Ask the handlers of `auth`; return the request as they leave it, and what its body says.

        Raises:
            ApiError: if they refuse it, or the body is too large or not JSON.
        """
        asks = self.asks if isinstance(self.asks, tuple) and decides(serving(request)) else None
        read = await read_json(request) if self.body or asks else None
        if asks is None:
            return request, read
        return await permit(request, read, asks, self.also_asks, several=self.several)


def routes_of(endpoints: Iterable[Endpoint]) -> list[BaseRoute]:
    """Make what Starlette finds endpoints by: `/runs/batch` comes before `/runs/{run_id}`."""
    found = sorted(endpoints, key=lambda each: [part.startswith("{") for part in each.path.split("/")])
    return [
        WebSocketRoute(each.path, each.handler)
        if each.method == "WEBSOCKET"
        else Route(each.path, each.respond, methods=[each.method])
        for each in found
    ]
