"""A tenant's figures and this process's, as Prometheus reads them."""

import time
from collections.abc import Callable
from uuid import UUID

from prometheus_client import REGISTRY, generate_latest

from offing.bus.live import LiveBus
from offing.storage import figures
from offing.storage.pool import Database
from offing.telemetry.metrics import metrics_from

FRESH_SECONDS = 5.0
"""The sums read all of a tenant's rows, so several scrapers share one reading."""


class Metrics:
    """Renders and, for a moment, remembers each tenant's figures."""

    def __init__(self, database: Database, bus: LiveBus, clock: Callable[[], float] = time.monotonic) -> None:
        self._database, self._bus, self._clock = database, bus, clock
        self._recent: dict[UUID, tuple[float, bytes]] = {}

    async def text(self, tenant: UUID) -> bytes:
        """The exposition text for a tenant."""
        until, known = self._recent.get(tenant, (0.0, b""))
        if self._clock() >= until:
            async with self._database.transaction(tenant) as connection:
                known = metrics_from(await figures.of_tenant(connection))
            self._recent[tenant] = self._clock() + FRESH_SECONDS, known
        return known + self._process() + generate_latest(REGISTRY)

    def _process(self) -> bytes:
        return (
            "# HELP offing_redis_faults_total Times that Redis failed this process.\n"
            "# TYPE offing_redis_faults_total counter\n"
            f"offing_redis_faults_total {self._bus.faults}\n"
            "# HELP offing_followers Event streams and waiting calls of this process.\n"
            "# TYPE offing_followers gauge\n"
            f"offing_followers {self._bus.followers}\n"
        ).encode()
