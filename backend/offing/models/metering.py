"""Every attempt is reserved before and settled after, also when it is cancelled in between. Knows no budget."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from offing.core.model import Usage
from offing.core.run import StopReason
from offing.finishing import finished
from offing.models.engine import Meter


@dataclass(slots=True)
class Booking:
    """A reservation that was granted, or the limit that refused it."""

    refused: StopReason | None = None
    used: Usage = field(default_factory=Usage)
    """What to book in the end; set while the reservation is open."""


@asynccontextmanager
async def reserved(meter: Meter, tokens: int, usd: Decimal) -> AsyncGenerator[Booking]:
    """A reservation around the block. When it is refused, the block runs with `refused` set and settles nothing."""
    booking = Booking(refused=await meter.reserve(tokens, usd))
    try:
        yield booking
    finally:
        if booking.refused is None:
            await finished(meter.settle(booking.used))
