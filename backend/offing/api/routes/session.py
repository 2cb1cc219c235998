"""Logging in by link, the page's session, logging out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from offing.api.auth import COOKIE, Known
from offing.api.parts import Held
from offing.api.routes.responses import problems
from offing.api.schemas import SessionOut
from offing.api.strict import StrictRoute
from offing.services import access, views

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
    held: Held, request: Request, token: Annotated[str, Query(min_length=1, max_length=200)]
) -> RedirectResponse:
    """Use a one-time link: sets the session's cookie and goes to the page."""
    session = await access.redeem(held.database, token)
    response = RedirectResponse("/", 303, headers={"Cache-Control": "no-store"})
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
