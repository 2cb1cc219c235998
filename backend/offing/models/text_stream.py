"""The progress of an attempt whose answer is streamed: when its first token arrived."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from offing.models.engine import TextListener


@dataclass(slots=True)
class StreamProgress:
    """The first token of the latest attempt of a role call."""

    first_text_ms: int | None = None
    """Time from the request to the first token, in milliseconds. `None` means that none was streamed."""

    def start(self, clock: Callable[[], float], listener: TextListener | None) -> Callable[[str], Awaitable[None]]:
        """Start an attempt now. Return the function that takes each streamed text and passes it to `listener`."""
        self.first_text_ms = None
        started_at = clock()

        async def take_text(text: str) -> None:
            if self.first_text_ms is None:
                self.first_text_ms = round((clock() - started_at) * 1000)
            if text and listener is not None:
                await listener.add_text(text)

        return take_text
