"""Route classes that apply strict bodies and authentication to every route of a router."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from offing.api.auth import authenticate
from offing.api.strict_request import StrictRequest
from offing.api.uploads import MAX_REQUEST_BYTES


class StrictRoute(APIRoute):
    """A route for authenticated callers that reads bodies through `StrictRequest`.

    The caller is authenticated here as well as in the dependencies of the router, because the framework
    resolves dependencies after it has read the body. Otherwise any client could make it wait for a body.
    """

    max_body_bytes: ClassVar[int] = 1_000_000

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            await authenticate(request)
            strict = StrictRequest(request.scope, request.receive)
            strict.max_body_bytes = self.max_body_bytes
            return await handle(strict)

        return strictly


class UploadRoute(StrictRoute):
    """A route for requests that carry files."""

    max_body_bytes: ClassVar[int] = MAX_REQUEST_BYTES
