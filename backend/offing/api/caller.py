"""Who sent a request."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Caller:
    """The tenant's key or session that sent a request."""

    tenant_id: UUID
    name: str
    """The name under which ratings record their origin: `key:<id>` or `web_ui`."""
    csrf_token: str | None
    """The token that writes of a session must carry. `None` means that the caller sent a key."""
    is_operator: bool
    """Whether the caller may change the installation. A key never may."""
    reauthenticate: Callable[[], Awaitable[object]]
    """Check that the key or session is still valid. Raises Unauthorized."""
