"""Reservation of usage around an attempt, which is settled afterwards, also after a cancellation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from offing.cancellation import run_to_completion
from offing.core.model import Usage
from offing.core.run import StopReason
from offing.models.engine import UsageMeter


@dataclass(slots=True)
class Reservation:
    """Reservation that was granted, or the limit that denied it."""

    denied_by: StopReason | None = None
    usage: Usage = field(default_factory=Usage)
    """Usage to charge at the end. It is set while the reservation is open."""


@asynccontextmanager
async def reserve_usage(meter: UsageMeter, max_tokens: int, max_cost_usd: Decimal) -> AsyncGenerator[Reservation]:
    """Reserve usage around the block.

    If it is denied, the block runs with `denied_by` set and nothing is settled.
    """
    reservation = Reservation(denied_by=await meter.reserve(max_tokens, max_cost_usd))
    try:
        yield reservation
    finally:
        if reservation.denied_by is None:
            await run_to_completion(meter.settle(reservation.usage))
