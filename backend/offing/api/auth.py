"""Authenticate the caller by API key or web UI session.

This is a dependency of routers, so no route is open by omission.
"""

import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from offing.api.caller import Caller
from offing.api.dependencies import AppDependencies, get_dependencies
from offing.api.guard import SAFE_METHODS
from offing.api.problems import ProblemError
from offing.api.project_users import identify_project_user
from offing.core.errors import InvalidInput, Unauthorized
from offing.services.access import KEY_PREFIX

SESSION_COOKIE = "offing_session"

bearer = HTTPBearer(
    auto_error=False, scheme_name="key", description="An API key that `offing key create NAME` created."
)

cookie = APIKeyCookie(
    name=SESSION_COOKIE,
    auto_error=False,
    scheme_name="session",
    description="The session of the web UI, created from a login link.",
)


async def authenticate(request: Request) -> Caller:
    """Return the caller of this request. If a key was sent, it is used instead of the session.

    The caller is looked up once per request. Raises Unauthorized without a valid key or session, and
    ProblemError for a write of a session without its token. It reads the headers itself, because the framework
    takes longer for a tree of dependencies than for the rest of a short request; `api.openapi` describes them.
    """
    return await authenticate_with(request, get_dependencies(request))


async def authenticate_with(request: Request, deps: AppDependencies) -> Caller:
    """Do the same as `authenticate` for a request of another application in this process."""
    if (caller := getattr(request.state, "caller", None)) is None:
        caller = request.state.caller = await _identify_caller(
            request, deps, await bearer(request), await cookie(request), request.headers.get("x-csrf-token")
        )
    return caller


async def _identify_caller(
    request: Request,
    deps: AppDependencies,
    key: HTTPAuthorizationCredentials | None,
    session: str | None,
    csrf_token: str | None,
) -> Caller:
    if session is None and not (key and key.credentials.startswith(KEY_PREFIX)):
        try:
            project_auth = deps.project_auth.get()
        except InvalidInput as error:
            raise Unauthorized("The Auth object of the project cannot be loaded.") from error
        if project_auth is not None:
            return await identify_project_user(request, project_auth)
    if key is not None:
        presented = key.credentials
        tenant, key_id = await deps.authenticator.authenticate_key(presented)
        return Caller(tenant, f"key:{key_id}", None, False, lambda: deps.authenticator.authenticate_key(presented))
    if not session:
        raise Unauthorized("This request needs an API key or a session.")
    caller = await deps.authenticator.authenticate_session(session)
    if request.method not in SAFE_METHODS and not hmac.compare_digest(
        (csrf_token or "").encode(), caller.csrf_token.encode()
    ):
        raise ProblemError(
            403,
            "csrf",
            "A write that uses the session cookie needs the CSRF token of the session.",
            "Send the csrf_token of GET /api/v1/session in the X-CSRF-Token header.",
            "X-CSRF-Token",
        )
    return Caller(
        caller.tenant_id,
        "web_ui",
        caller.csrf_token,
        caller.is_operator,
        lambda: deps.authenticator.authenticate_session(session),
    )


CurrentCaller = Annotated[Caller, Depends(authenticate)]


def require_person(caller: CurrentCaller) -> Caller:
    """Return the caller if it is a session of the web UI. Raises ProblemError for an API key."""
    if caller.csrf_token is None:
        raise ProblemError(
            403,
            "not_a_person",
            "An API key cannot create or revoke API keys, so that a stolen key ends when it is revoked.",
            "Use the web UI, or `offing key` on the machine.",
        )
    return caller


def require_operator(caller: CurrentCaller) -> Caller:
    """Return the caller if it may change the installation. Raises ProblemError otherwise."""
    if not caller.is_operator:
        raise ProblemError(
            403,
            "not_the_operator",
            "Only the operator may change this, in a session that was opened within the last 12 hours.",
            "On the machine, run `offing login --operator` and open the link.",
        )
    return caller


CurrentPerson = Annotated[Caller, Depends(require_person)]
CurrentOperator = Annotated[Caller, Depends(require_operator)]
