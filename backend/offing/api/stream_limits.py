"""How many event streams and waiting calls each tenant and each key may have open at a time.

Counted in this process, so that it holds without Redis: with several API processes, each allows as many. A tenant that
has used up its own takes nothing from another.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from offing.api.problems import Refusal

RETRY_SECONDS = 5


class StreamLimits:
    """Counts what is open. `per_tenant` and `per_key` are maxima; the page's sessions of a tenant count as one key."""

    def __init__(self, per_tenant: int, per_key: int) -> None:
        self._per_tenant, self._per_key = per_tenant, per_key
        self._open: Counter[tuple[UUID, str]] = Counter()

    def enter(self, tenant: UUID, key: str) -> None:
        """Count one more. Raises Refusal, a 429, when the tenant or the key has as many as it may."""
        of_key = self._open[tenant, key]
        of_tenant = sum(count for (owner, _), count in self._open.items() if owner == tenant)
        if of_key >= self._per_key:
            raise _refusal(f"This key has {of_key} event streams and waiting calls open, as many as it may.")
        if of_tenant >= self._per_tenant:
            raise _refusal(f"This tenant has {of_tenant} event streams and waiting calls open, as many as it may.")
        self._open[tenant, key] += 1

    def leave(self, tenant: UUID, key: str) -> None:
        """Count one less."""
        self._open[tenant, key] -= 1
        if self._open[tenant, key] <= 0:
            del self._open[tenant, key]

    @contextmanager
    def one(self, tenant: UUID, key: str) -> Generator[None]:
        """Count one while the block runs."""
        self.enter(tenant, key)
        try:
            yield
        finally:
            self.leave(tenant, key)


def _refusal(detail: str) -> Refusal:
    return Refusal(
        429,
        "too_many_streams",
        detail,
        "Close some, or follow up to 50 runs on one stream: GET /api/v1/events.",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
