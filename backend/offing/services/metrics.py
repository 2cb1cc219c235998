"""Export the metrics of a tenant and of this process in Prometheus text format."""

import time
from collections.abc import Callable
from uuid import UUID

from prometheus_client import REGISTRY, generate_latest

from offing.bus.live import LiveBus
from offing.storage import metric_queries
from offing.storage.pool import Database
from offing.telemetry.metrics import render_metrics

CACHE_SECONDS = 5.0
"""Seconds for which the text of a tenant is cached. The sums read all rows of the tenant, so several scrapers
share one reading.
"""


class MetricsExporter:
    """Renders the metrics of each tenant and caches them for a moment."""

    def __init__(self, database: Database, bus: LiveBus, clock: Callable[[], float] = time.monotonic) -> None:
        self._database, self._bus, self._clock = database, bus, clock
        self._recent: dict[UUID, tuple[float, bytes]] = {}

    async def render(self, tenant_id: UUID) -> bytes:
        """Return the metrics of a tenant in Prometheus text format."""
        until, rendered = self._recent.get(tenant_id, (0.0, b""))
        if self._clock() >= until:
            async with self._database.transaction(tenant_id) as connection:
                rendered = render_metrics(await metric_queries.list_tenant_metrics(connection))
            self._recent[tenant_id] = self._clock() + CACHE_SECONDS, rendered
        return rendered + self._render_process_metrics() + generate_latest(REGISTRY)

    def _render_process_metrics(self) -> bytes:
        return (
            "# HELP offing_redis_faults_total Times that Redis failed this process.\n"
            "# TYPE offing_redis_faults_total counter\n"
            f"offing_redis_faults_total {self._bus.failure_count}\n"
            "# HELP offing_followers Event streams and waiting calls of this process.\n"
            "# TYPE offing_followers gauge\n"
            f"offing_followers {self._bus.subscriber_count}\n"
        ).encode()
