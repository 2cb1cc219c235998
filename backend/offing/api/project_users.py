"""Callers that the `Auth` object of a LangGraph project accepts."""

from fastapi import Request

from offing.api.caller import Caller
from offing.api.problems import ProblemError
from offing.core.errors import Unauthorized
from offing.services.langgraph_auth import AccessDeniedError, AuthenticatedUser, AuthRequest, ProjectAuth


async def identify_project_user(request: Request, project_auth: ProjectAuth) -> Caller:
    """Return the user of a request without a key or session of Offing.

    The user sees all data of the tenant. If the project has rules of who sees what, which refer to LangGraph's
    threads and assistants, the user is rejected here, because this API would show more. Raises Unauthorized and
    ProblemError.
    """

    async def authenticate() -> Caller:
        user = await authenticate_user(request, project_auth)
        if project_auth.has_rules:
            raise ProblemError(
                403,
                "project_rules",
                "The rules of the project's Auth object do not cover this API.",
                "Use the LangGraph API, or an API key of Offing.",
            )
        return Caller(user.tenant_id, f"user:{user.identity}"[:200], None, False, authenticate)

    return await authenticate()


async def authenticate_user(request: Request, project_auth: ProjectAuth) -> AuthenticatedUser:
    """Return the user whom the project's handler names. Raises Unauthorized and ProblemError."""
    try:
        return await project_auth.authenticate(read_auth_request(request))
    except AccessDeniedError as denied:
        if denied.status_code == 401:
            raise Unauthorized(denied.detail) from denied
        raise ProblemError(denied.status_code, denied.code, denied.detail, "Ask the author of the project.") from denied


def read_auth_request(request: Request) -> AuthRequest:
    """Return the request as the handlers of a project get it."""
    return AuthRequest(
        request.method,
        request.url.path,
        dict(request.headers.raw),
        {name: str(value) for name, value in request.path_params.items()},
        dict(request.query_params),
        request,
    )
