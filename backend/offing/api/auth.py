"""Who is asking: an API key or the page's session. A dependency of routers, so that no route is open by omission."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from offing.api.guard import SAFE
from offing.api.parts import Held, Parts, parts_of
from offing.api.problems import Refusal
from offing.core.errors import Unauthorised

COOKIE = "offing_session"

bearer = HTTPBearer(auto_error=False, scheme_name="key", description="An API key, made by `offing key create NAME`.")

cookie = APIKeyCookie(
    name=COOKIE, auto_error=False, scheme_name="session", description="The page's session, from a login link."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """A tenant's key or session."""

    tenant: UUID
    name: str
    """As ratings name their origin: `key:<id>`, or `page`."""
    csrf_token: str | None
    """What a session's writes must carry. None: came with a key."""
    again: Callable[[], Awaitable[object]]
    """Asks whether the key or session still holds. Raises Unauthorised."""


async def authenticated(
    request: Request,
    held: Held,
    key: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    session: Annotated[str | None, Depends(cookie)],
    x_csrf_token: Annotated[str | None, Header(description="Needed on writes with the session cookie.")] = None,
) -> Caller:
    """The caller of this request. A key, where one is sent, is what counts. Who it is, is found out once a request.

    Raises Unauthorised without a usable one, and Refusal for a session's write without its token.
    """
    if (found := getattr(request.state, "caller", None)) is None:
        found = request.state.caller = await _caller(request, held, key, session, x_csrf_token)
    return found


async def authenticate(request: Request) -> None:
    """Do what `authenticated` does, for what happens before the dependencies of a route."""
    csrf_token = request.headers.get("x-csrf-token")
    await authenticated(request, parts_of(request), await bearer(request), await cookie(request), csrf_token)


async def _caller(
    request: Request, held: Parts, key: HTTPAuthorizationCredentials | None, session: str | None, csrf_token: str | None
) -> Caller:
    if key is not None:
        presented = key.credentials
        tenant, key_id = await held.door.holder_of_key(presented)
        return Caller(tenant, f"key:{key_id}", None, lambda: held.door.holder_of_key(presented))
    if not session:
        raise Unauthorised("This needs an API key or a session.")
    found = await held.door.holder_of_session(session)
    if request.method not in SAFE and not hmac.compare_digest((csrf_token or "").encode(), found.csrf_token.encode()):
        raise Refusal(
            403,
            "csrf",
            "A write with the session cookie needs its token.",
            "Send the csrf_token of GET /api/v1/session as X-CSRF-Token.",
            "X-CSRF-Token",
        )
    return Caller(found.tenant, "page", found.csrf_token, lambda: held.door.holder_of_session(session))


Known = Annotated[Caller, Depends(authenticated)]
