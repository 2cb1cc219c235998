"""Authentication and authorization by the `Auth` object of a LangGraph project.

The project's handlers decide who sends a request and what that person may see. Without such an object, Offing's API
keys apply. Everything that is unclear is rejected.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from langgraph_sdk.auth.types import AuthContext

from offing.core.errors import InvalidInput, OffingError
from offing.storage.migrate import LOCAL_TENANT

TENANT_FIELD = "offing_tenant"
"""Field of a user with the id of the tenant whose data the user sees. Without it, the local tenant's."""


class AccessDeniedError(OffingError):
    """`AccessDeniedError(status_code, detail, headers)`: a handler rejected the request."""

    code = "access_denied"

    def __init__(self, status_code: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status_code, detail, headers)
        self.status_code, self.detail, self.headers = status_code, detail, dict(headers or {})

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """A request as the handler of a project may ask for it, by the names of its parameters."""

    method: str
    path: str
    headers: Mapping[bytes, bytes] = field(repr=False)
    """Names in lower case."""
    path_params: Mapping[str, str] = field(default_factory=dict[str, str])
    query_params: Mapping[str, str] = field(default_factory=dict[str, str])
    request: Any = None
    """The request of the web framework."""

    @property
    def authorization(self) -> str | None:
        value = self.headers.get(b"authorization")
        return None if value is None else value.decode("latin-1")


@dataclass(frozen=True, slots=True)
class AuthenticatedUser:
    """Who sends a request, as the project's handler says."""

    identity: str
    permissions: tuple[str, ...]
    tenant_id: UUID
    user: Any
    """The user as the project's other handlers get it: attributes and items."""

    def as_mapping(self) -> "ProjectUser":
        """Return the user with attributes and items, whatever the handler returned."""
        if isinstance(self.user, ProjectUser):
            return self.user
        fields = {
            name: getattr(self.user, name) for name in ("display_name", "is_authenticated") if hasattr(self.user, name)
        }
        return ProjectUser({**fields, "identity": self.identity, "permissions": list(self.permissions)})


class ProjectUser(Mapping[str, Any]):
    """A user whose fields are attributes and items, as in LangGraph's server."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields: dict[str, Any] = {
            "is_authenticated": True,
            "display_name": fields["identity"],
            "permissions": [],
            **fields,
        }

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy has no fields yet
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(name) from None


class ProjectAuth:
    """The handlers of one `Auth` object."""

    def __init__(self, auth: Any, field: str) -> None:
        """`field` names the object in errors. Raises InvalidInput for an object without a handler for requests."""
        self._auth, self._field = auth, field
        handler = getattr(auth, "_authenticate_handler", None)
        if handler is None:
            problem = f"it is of type {type(auth).__name__} and has no @auth.authenticate handler"
            raise InvalidInput(field, problem, "Name a langgraph_sdk.Auth with one, or remove `auth`.")
        self._authenticate: Callable[..., Any] = handler

    @property
    def has_rules(self) -> bool:
        """Whether handlers decide what users see. Without any, a user sees everything of the tenant."""
        return bool(self._auth._handlers or self._auth._global_handlers)

    async def authenticate(self, request: AuthRequest) -> AuthenticatedUser:
        """Return who sends a request. Raises AccessDeniedError, and InvalidInput for a result that is no user."""
        known = inspect.signature(self._authenticate).parameters
        offered = {
            name: getattr(request, name)
            for name in ("request", "path", "method", "path_params", "query_params", "headers", "authorization")
        }
        takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
        arguments = offered if takes_all else {name: value for name, value in offered.items() if name in known}
        return self._read_user(await _call(self._authenticate, arguments))

    async def authorize(self, user: AuthenticatedUser, resource: str, action: str, value: Any) -> Mapping[str, Any]:
        """Return the filter that records must match; an empty one means all records.

        The most specific handler decides. It may change `value`, which the caller then uses. Raises AccessDeniedError.
        """
        handler = self._find_handler(resource, action)
        if handler is None:
            return {}
        context = AuthContext(
            permissions=user.permissions,
            user=user.user,
            resource=cast(Any, resource),
            action=cast(Any, action),
        )
        result = await _call(handler, {"ctx": context, "value": value})
        if result is None or result is True:
            return {}
        if result is False:
            raise AccessDeniedError(403, "Forbidden")
        if isinstance(result, Mapping):
            return dict(cast(Mapping[str, Any], result))
        problem = f"the handler of {resource}.{action} returned {type(result).__name__}"
        raise InvalidInput(self._field, problem, "Return True, False, None or a filter.")

    def _find_handler(self, resource: str, action: str) -> Callable[..., Any] | None:
        handlers: Mapping[tuple[str, str], Sequence[Callable[..., Any]]] = self._auth._handlers
        for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")):
            if registered := handlers.get(key):
                return registered[-1]
        everything: Sequence[Callable[..., Any]] = self._auth._global_handlers
        return everything[-1] if everything else None

    def _read_user(self, result: Any) -> AuthenticatedUser:
        if isinstance(result, str):
            result = {"identity": result}
        if isinstance(result, Mapping):
            fields = dict(cast(Mapping[str, Any], result))
            if not fields.get("identity"):
                raise InvalidInput(
                    self._field, "the authenticate handler returned no identity", 'Return {"identity": …}.'
                )
            result = ProjectUser(fields)
        identity = str(getattr(result, "identity", "") or "")
        if not identity:
            raise InvalidInput(self._field, "the authenticate handler returned no user", 'Return {"identity": …}.')
        permissions = tuple(map(str, getattr(result, "permissions", ()) or ()))
        return AuthenticatedUser(identity, permissions, self._read_tenant(result), result)

    def _read_tenant(self, user: Any) -> UUID:
        named = getattr(user, TENANT_FIELD, None)
        try:
            return LOCAL_TENANT if named is None else UUID(str(named))
        except ValueError:
            raise InvalidInput(
                self._field, f"{TENANT_FIELD} of the user is not the id of a tenant", "Return a UUID, or leave it out."
            ) from None


async def _call(handler: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a handler, and turn its rejections into AccessDeniedError."""
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(**arguments)
        return await asyncio.to_thread(handler, **arguments)
    except AssertionError as error:
        raise AccessDeniedError(401, str(error) or "Unauthorized") from error
    except Exception as error:
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            raise
        raise AccessDeniedError(status, str(getattr(error, "detail", "")), getattr(error, "headers", None)) from error
