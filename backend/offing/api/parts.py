"""What an API process holds while it serves, and how routes get at it. Made and closed by the app's lifespan."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from offing.bus.hints import BusHints
from offing.bus.live import LiveBus
from offing.sdk import Graph
from offing.services import graphs
from offing.services.access import Doorkeeper
from offing.services.metrics import Metrics
from offing.settings import Settings, app_address, redis_address
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    database: Database
    hints: BusHints
    door: Doorkeeper
    graphs: Mapping[str, Graph]
    metrics: Metrics

    @property
    def live(self) -> LiveBus:
        return self.hints.live


@asynccontextmanager
async def assembled(settings: Settings) -> AsyncGenerator[Parts]:
    """Open what a process needs, on the loop that runs it. Raises InvalidInput when an address is not set."""
    app_url, redis_url = app_address(settings), redis_address(settings)
    async with Database(app_url, most=settings.pool_size) as database, BusHints(redis_url) as hints:
        installed = graphs.installed(settings.graphs)
        yield Parts(settings, database, hints, Doorkeeper(database), installed, Metrics(database, hints.live))


def parts_of(request: Request) -> Parts:
    return request.app.state.parts


Held = Annotated[Parts, Depends(parts_of)]
