"""Subscriptions to the events of a thread, as clients request them."""

from typing import Annotated

from pydantic import Field

from offing.core.errors import InvalidInput
from offing.kernel.thread_events import CUSTOM
from offing.protocols.langgraph.bodies import Body
from offing.protocols.langgraph.thread_events import CHANNELS, EventFilter

Names = Annotated[list[str], Field(max_length=100)]

MAX_SEQ = 2**53


class SubscribeIn(Body):
    channels: Annotated[Names, Field(min_length=1)]
    namespaces: Annotated[list[Names], Field(max_length=1000)] | None = None
    depth: Annotated[int, Field(ge=0, le=1000)] | None = None
    since: Annotated[int, Field(ge=-1, le=MAX_SEQ)] | None = None


def parse_filter(subscription: SubscribeIn) -> EventFilter:
    """Return the filter of a subscription. Raises InvalidInput for a channel that does not exist."""
    for channel in subscription.channels:
        if channel not in CHANNELS and not (channel.startswith(CUSTOM) and channel != CUSTOM):
            names = ", ".join([*sorted(CHANNELS), "custom:NAME"])
            raise InvalidInput("channels", f"there is no channel {channel[:100]!r}", f"Use any of {names}.")
    namespaces = None if subscription.namespaces is None else tuple(tuple(one) for one in subscription.namespaces)
    return EventFilter(frozenset(subscription.channels), namespaces, subscription.depth)
