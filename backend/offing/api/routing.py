"""Route classes, so that what they do applies to whatever a router serves: strict bodies, of known callers only."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from offing.api.auth import authenticate
from offing.api.strict import StrictRequest
from offing.api.uploads import MAX_UPLOAD


class StrictRoute(APIRoute):
    """For known callers. Reads their bodies through `StrictRequest`.

    The caller is asked for here as well as in the router's dependencies: the framework resolves those when it has read
    the body, so that anybody could make it wait for one.
    """

    most_body: ClassVar[int] = 1_000_000

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            await authenticate(request)
            strict = StrictRequest(request.scope, request.receive)
            strict.most_body = self.most_body
            return await handle(strict)

        return strictly


class UploadRoute(StrictRoute):
    """For requests that carry files."""

    most_body: ClassVar[int] = MAX_UPLOAD
