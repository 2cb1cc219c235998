"""What an API process holds while it serves, and how routes get at it. Made and closed by the app's lifespan."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from offing.bus.live import LiveBus
from offing.services.access import Doorkeeper
from offing.settings import Settings
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    database: Database
    live: LiveBus
    door: Doorkeeper


def parts_of(request: Request) -> Parts:
    return request.app.state.parts


Held = Annotated[Parts, Depends(parts_of)]
