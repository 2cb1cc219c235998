"""Logging in by link, the page's session, logging out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from offing.api.auth import COOKIE, Known
from offing.api.parts import Held
from offing.api.routes.responses import problems
from offing.api.routing import StrictRoute
from offing.api.schemas import SessionOut
from offing.core.errors import InvalidInput, OffingError, Unauthorised, Unavailable
from offing.services import access, views

NO_STORE = {"Cache-Control": "no-store"}

router = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)

login = APIRouter(tags=["session"])
"""Open to all: who has a link's token may come in, once."""


@router.get("")
async def get_session(caller: Known, held: Held) -> SessionOut:
    """Who you are, and the token that the page's writes must carry."""
    tenant = await views.tenant_settings(held.database, caller.tenant)
    return SessionOut(tenant=tenant.name, csrf_token=caller.csrf_token)


@router.delete("", status_code=204)
async def log_out(caller: Known, held: Held, request: Request, response: Response) -> None:
    """End the session. With an API key there is none, and nothing happens."""
    token = request.cookies.get(COOKIE)
    if caller.csrf_token is not None and token:
        await held.door.end_session(caller.tenant, token)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@login.get(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=problems(_401="The link was used before or has expired."),
)
async def log_in(
    held: Held,
    request: Request,
    token: Annotated[str | None, Query(max_length=200, description="Of the link that `offing login` prints.")] = None,
) -> RedirectResponse:
    """Use a one-time link: sets the session's cookie and redirects to the web UI.

    A browser whose link cannot be used is redirected to the sign-in view, which says why and how to get a new link.
    """
    try:
        session = await access.redeem(held.database, _required(token))
    except (Unauthorised, InvalidInput, Unavailable) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse(f"/sign-in?link={_reason(error)}", 303, headers=NO_STORE)
    response = RedirectResponse("/", 303, headers=NO_STORE)
    response.set_cookie(
        COOKIE,
        session.token,
        max_age=int(session.valid.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _required(token: str | None) -> str:
    if not token:
        raise InvalidInput("token", "the link has no token", "Open the whole link that `offing login` prints.")
    return token


def _reason(error: OffingError) -> str:
    """Why a link could not be used, as the sign-in view takes it."""
    if isinstance(error, Unavailable):
        return "unchecked"
    return "used" if isinstance(error, Unauthorised) else "incomplete"
