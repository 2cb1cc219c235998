"""Every attempt is reserved before and settled after, also when it is cancelled in between. Knows no budget."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from offing.core.model import Usage
from offing.core.run import StopReason
from offing.finishing import finished, over
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
    booking = Booking(refused=await _reserve(meter, tokens, usd))
    try:
        yield booking
    finally:
        if booking.refused is None:
            await finished(meter.settle(booking.used))


async def _reserve(meter: Meter, tokens: int, usd: Decimal) -> StopReason | None:
    """A cancellation that strikes here finds out whether something was set aside, and gives it back."""
    pending = asyncio.ensure_future(meter.reserve(tokens, usd))
    if (cancelled := await over(pending)) is None:
        return pending.result()
    if not pending.cancelled() and pending.exception() is None and pending.result() is None:
        await finished(meter.settle(Usage()))
    raise cancelled
