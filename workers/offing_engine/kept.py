"""Keys and values of finished requests, kept for the turn that goes on from them.

The only home of which are kept and found. One store belongs to one version, so that no other weights' values are ever
used; a stretch is found only by the very ids that it was computed from.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Per layer keys and values, [heads, length, width]."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The first `length` tokens of a prompt, already read."""

    length: int
    layers: Layers


class Kept:
    """At most `budget` bytes; what was used longest ago goes first. 0: nothing is kept."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._found: OrderedDict[bytes, Layers] = OrderedDict()
        self._lengths: Counter[int] = Counter()
        self._size = 0

    @property
    def keeps(self) -> bool:
        return self._budget > 0

    def put(self, ids: Sequence[int], layers: Layers) -> None:
        """Keeps what was computed from `ids`, one column each."""
        key = _key(ids)
        if key in self._found:
            self._forget(key)
        self._found[key] = layers
        self._lengths[len(ids)] += 1
        self._size += _bytes(layers)
        while self._size > self._budget:
            self._forget(next(iter(self._found)))

    def longest(self, ids: Sequence[int]) -> Stretch | None:
        """The longest kept beginning of `ids` that leaves at least one token to read."""
        whole = _key(ids)
        for length in sorted(self._lengths, reverse=True):
            key = whole[: length * array("i").itemsize]
            if length < len(ids) and key in self._found:
                self._found.move_to_end(key)
                return Stretch(length, self._found[key])
        return None

    def _forget(self, key: bytes) -> None:
        layers = self._found.pop(key)
        self._size -= _bytes(layers)
        length = len(key) // array("i").itemsize
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]


def _key(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()


def _bytes(layers: Layers) -> int:
    return sum(part.nbytes for pair in layers for part in pair)
