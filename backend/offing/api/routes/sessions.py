"""Routes for logging in with a link, the session of the web UI, and logging out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from offing.api.auth import SESSION_COOKIE, CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import describe_problems
from offing.api.schemas.platform import SessionOut
from offing.api.strict_route import StrictRoute
from offing.core.errors import InvalidInput, OffingError, Unauthorized, Unavailable
from offing.services import access, tenants

NO_STORE = {"Cache-Control": "no-store"}

router = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)

login_router = APIRouter(tags=["session"])
"""Open to all: anyone who has the token of a login link may use it once."""


@router.get("")
async def get_session(caller: CurrentCaller, deps: Deps) -> SessionOut:
    """Get the tenant of the session and the token that writes of the web UI must carry."""
    tenant = await tenants.get_tenant(deps.database, caller.tenant_id)
    return SessionOut(tenant=tenant.name, csrf_token=caller.csrf_token, is_operator=caller.is_operator)


@router.delete("", status_code=204)
async def delete_session(caller: CurrentCaller, deps: Deps, request: Request, response: Response) -> None:
    """End the session. With an API key there is no session, and nothing happens."""
    token = request.cookies.get(SESSION_COOKIE)
    if caller.csrf_token is not None and token:
        await deps.authenticator.end_session(caller.tenant_id, token)
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")


@login_router.get(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=describe_problems(_401="The link has already been used or has expired."),
)
async def redeem_login_link(
    deps: Deps,
    request: Request,
    token: Annotated[
        str | None, Query(max_length=200, description="Token of the link that `offing login` prints.")
    ] = None,
) -> RedirectResponse:
    """Use a one-time login link: set the session cookie and redirect to the web UI.

    If the link cannot be used, the browser is redirected to the sign-in view, which shows the reason and how to
    get a new link.
    """
    try:
        session = await access.redeem_login_link(deps.database, _require_token(token))
    except (Unauthorized, InvalidInput, Unavailable) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse(f"/sign-in?link={_login_failure_reason(error)}", 303, headers=NO_STORE)
    response = RedirectResponse("/", 303, headers=NO_STORE)
    response.set_cookie(
        SESSION_COOKIE,
        session.token,
        max_age=int(session.ttl.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _require_token(token: str | None) -> str:
    if not token:
        raise InvalidInput("token", "the link has no token", "Open the complete link that `offing login` prints.")
    return token


def _login_failure_reason(error: OffingError) -> str:
    """Return the reason why a link could not be used, in the form that the sign-in view reads."""
    if isinstance(error, Unavailable):
        return "unchecked"
    return "used" if isinstance(error, Unauthorized) else "incomplete"
