"""What happens before a request is read: who sent it, and how large it may be."""

from collections.abc import Callable
from urllib.parse import unquote

from starlette.authentication import AuthCredentials
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.core.errors import OffingError
from offing.protocols.langgraph import errors
from offing.protocols.langgraph.context import LangGraphContext, find_caller

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Maximum size of a request, the same as that of a graph's state."""

OPEN_PATHS = frozenset({"/ok", "/info"})


class _TooLargeError(Exception):
    """The body of a request is too large."""


class RequestGate:
    """ASGI middleware that identifies the caller before it reads the body, and limits the body."""

    def __init__(self, app: ASGIApp, get_context: Callable[[], LangGraphContext]) -> None:
        self.app, self.get_context = app, get_context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (rejection := await find_rejection(self.get_context, scope, True)) is not None:
            await rejection(scope, receive, send)
            return
        # every body is JSON, also where a client does not say so, as the proxy of agent-chat-ui
        headers = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
        scope["headers"] = [*headers, (b"content-type", b"application/json")]
        received, has_started = 0, False

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                raise _TooLargeError
            return message

        async def noticed(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, limited, noticed)
        except _TooLargeError:
            if has_started:
                raise
            await errors.respond(413, f"The body has more than {MAX_BODY_BYTES} bytes.")(scope, receive, send)


async def find_rejection(
    get_context: Callable[[], LangGraphContext], scope: Scope, has_open_paths: bool
) -> Response | None:
    """Return the answer to a request of somebody unknown. `None` means that it is accepted.

    `has_open_paths`: whether the paths that need no caller are those of this API. The caller is also shown to code of
    a project, as `request.user` and `request.auth`.
    """
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if has_open_paths and path in OPEN_PATHS:
        return None
    if "\0" in unquote(path + scope["query_string"].decode("latin-1")):
        return errors.respond(422, "The address has a NUL character. Remove it.")
    request = Request(scope if scope["type"] == "http" else {**scope, "type": "http", "method": "GET"})
    try:
        caller = await find_caller(request, get_context())
    except OffingError as error:
        return errors.respond_error(error)
    except HTTPException as error:
        return errors.respond(error.status_code, str(error.detail))
    user = caller.principal.show_user()
    scope["user"], scope["auth"] = user, AuthCredentials([str(one) for one in user["permissions"]])
    return None
