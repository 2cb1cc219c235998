"""What happens before a request is read: who sent it, and how large it may be."""

from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.core.errors import OffingError
from offing.protocols.langgraph import errors
from offing.protocols.langgraph.context import identify_caller

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Maximum size of a request, the same as that of a graph's state."""

OPEN_PATHS = frozenset({"/ok", "/info"})


class _TooLargeError(Exception):
    """The body of a request is too large."""


class RequestGate:
    """ASGI middleware that identifies the caller before it reads the body, and limits the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (rejection := await _find_rejection(scope)) is not None:
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


async def _find_rejection(scope: Scope) -> Response | None:
    """Return the answer to a request of somebody unknown. `None` means that it is accepted."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path in OPEN_PATHS:
        return None
    if "\0" in unquote(path + scope["query_string"].decode("latin-1")):
        return errors.respond(422, "The address has a NUL character. Remove it.")
    try:
        await identify_caller(Request(scope))
    except OffingError as error:
        return errors.respond_error(error)
    except HTTPException as error:
        return errors.respond(error.status_code, str(error.detail))
    return None
