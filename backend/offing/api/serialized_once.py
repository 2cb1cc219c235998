"""Serialize a value once for all followers who get the same object."""

from collections import OrderedDict
from collections.abc import Callable


class SerializedOnce:
    """The texts of the values that were serialized last, by the identity of the value.

    A value that is read again from Postgres is another object, so no text outlives a change.
    """

    def __init__(self, max_bytes: int) -> None:
        """Keep at most `max_bytes` of texts. The values themselves are about as large and are not counted."""
        self._max_bytes = max_bytes
        self._texts = OrderedDict[int, tuple[object, bytes]]()
        self.byte_count = 0
        """Bytes of the texts that are kept."""

    def get(self, value: object, serialize: Callable[[], bytes]) -> bytes:
        """Return the text of a value, from `serialize` if it is not there."""
        known = self._texts.get(id(value))
        if known is not None:
            self._texts.move_to_end(id(value))
            return known[1]
        text = serialize()
        self._texts[id(value)] = (value, text)  # the entry keeps the value, so that no other one has its id
        self.byte_count += len(text)
        while self.byte_count > self._max_bytes:
            _, (_, oldest) = self._texts.popitem(last=False)
            self.byte_count -= len(oldest)
        return text
