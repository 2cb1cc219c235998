"""Serialize a value once for all followers who get the same object."""

from collections import OrderedDict
from collections.abc import Callable


class SerializedOnce:
    """The texts of the values that were serialized last, by the identity of the value.

    A value that is read again from Postgres is another object, so no text outlives a change.
    """

    def __init__(self, max_values: int) -> None:
        self._max_values = max_values
        self._texts = OrderedDict[int, tuple[object, bytes]]()

    def get(self, value: object, serialize: Callable[[], bytes]) -> bytes:
        """Return the text of a value, from `serialize` if it is not there."""
        known = self._texts.get(id(value))
        if known is not None:
            self._texts.move_to_end(id(value))
            return known[1]
        text = serialize()
        self._texts[id(value)] = (value, text)  # the entry keeps the value, so that no other one has its id
        if len(self._texts) > self._max_values:
            self._texts.popitem(last=False)
        return text
