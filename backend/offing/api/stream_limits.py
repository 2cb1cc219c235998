"""Limit how many event streams and waiting calls each tenant and each key may have open at a time.

The counts are kept in this process, so they hold without Redis. With several API processes, each allows as
many. A tenant that has reached its limit takes nothing from another tenant.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from offing.api.problems import ProblemError

RETRY_SECONDS = 5


class StreamLimits:
    """Counters of open streams.

    `per_tenant` and `per_key` are maxima; the web UI sessions of a tenant count as one key.
    """

    def __init__(self, per_tenant: int, per_key: int) -> None:
        self._per_tenant, self._per_key = per_tenant, per_key
        self._open: Counter[tuple[UUID, str]] = Counter()

    def acquire(self, tenant_id: UUID, key: str) -> None:
        """Count one more stream.

        Raises ProblemError with status 429 if the tenant or the key has reached its maximum.
        """
        of_key = self._open[tenant_id, key]
        of_tenant = sum(count for (owner, _), count in self._open.items() if owner == tenant_id)
        if of_key >= self._per_key:
            raise _too_many_streams_error(
                f"This key has {of_key} open event streams and waiting calls, which is the maximum."
            )
        if of_tenant >= self._per_tenant:
            raise _too_many_streams_error(
                f"This tenant has {of_tenant} open event streams and waiting calls, which is the maximum."
            )
        self._open[tenant_id, key] += 1

    def release(self, tenant_id: UUID, key: str) -> None:
        """Count one stream less."""
        self._open[tenant_id, key] -= 1
        if self._open[tenant_id, key] <= 0:
            del self._open[tenant_id, key]

    @contextmanager
    def open_stream(self, tenant_id: UUID, key: str) -> Generator[None]:
        """Count one stream while the block runs."""
        self.acquire(tenant_id, key)
        try:
            yield
        finally:
            self.release(tenant_id, key)


def _too_many_streams_error(detail: str) -> ProblemError:
    return ProblemError(
        429,
        "too_many_streams",
        detail,
        "Close some of them, or follow up to 50 runs on one stream with GET /api/v1/events.",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
