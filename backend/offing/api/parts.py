"""What an API process holds while it serves, and how routes get at it. Made and closed by the app's lifespan."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from offing.api.hurried import HurriedHints
from offing.api.stream_limits import StreamLimits
from offing.api.uploads import QUEUE_SECONDS, UploadGate
from offing.bus.hints import BusHints
from offing.bus.live import LiveBus
from offing.core.model import EngineChoice
from offing.library.readers import Readers
from offing.mcp.catalogue import Catalogue
from offing.models.discover import default_choice, role_choices
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
    hints: HurriedHints
    live: LiveBus
    door: Doorkeeper
    streams: StreamLimits
    graphs: Mapping[str, Graph]
    metrics: Metrics
    default_engine: EngineChoice
    role_engines: Mapping[str, EngineChoice]
    """Engines that the operator set for roles of these names."""
    servers: Catalogue
    """MCP servers that runs may name."""
    readers: Readers
    """Read the documents of all uploads."""
    uploads: UploadGate


@asynccontextmanager
async def assembled(settings: Settings) -> AsyncGenerator[Parts]:
    """Open what a process needs, on the loop that runs it. Raises InvalidInput when an address is not set."""
    app_url, redis_url = app_address(settings), redis_address(settings)
    async with (
        Database(app_url, most=settings.pool_size) as database,
        BusHints(redis_url) as hints,
        Readers(settings.readers, wait_seconds=QUEUE_SECONDS) as readers,
    ):
        hurried = HurriedHints(hints)
        installed = graphs.available(settings)
        yield Parts(
            settings=settings,
            database=database,
            hints=hurried,
            live=hints.live,
            door=Doorkeeper(database),
            streams=StreamLimits(settings.streams_per_tenant, settings.streams_per_key),
            graphs=installed,
            metrics=Metrics(database, hints.live),
            default_engine=default_choice(),
            role_engines=role_choices(),
            servers=Catalogue(settings.mcp),
            readers=readers,
            uploads=UploadGate(),
        )
        await hurried.close()


def parts_of(request: Request) -> Parts:
    return request.app.state.parts


Held = Annotated[Parts, Depends(parts_of)]
