"""Logging in by link, the page's session, logging out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import problems
from offing.api.schemas import SessionOut
from offing.api.strict import StrictRoute

router = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)

login = APIRouter(tags=["session"])
"""Open to all: who has a link's token may come in, once."""


@router.get("")
async def get_session(caller: Known, held: Held) -> SessionOut:
    """Who you are, and the token that the page's writes must carry."""
    raise NotImplementedError


@router.delete("", status_code=204)
async def log_out(caller: Known, held: Held, response: Response) -> None:
    """End the session. With an API key there is none, and nothing happens."""
    raise NotImplementedError


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
    raise NotImplementedError
