"""Prefix cache: keys and values of finished requests, for later turns that continue from them.

Each policy version has its own cache, so that values of other weights are never used. A prefix is
found only by exactly the token ids that it was computed from.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

LayerTensors = list[tuple[Tensor, Tensor]]
"""Keys and values per layer, [heads, length, width]."""


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """Cached keys and values of the first `length` tokens of a prompt."""

    length: int
    layers: LayerTensors


class PrefixCache:
    """Cache of at most `max_bytes` bytes. The least recently used entry is evicted first. `0` disables it."""

    def __init__(self, max_bytes: int) -> None:
        self._budget = max_bytes
        self._entries: OrderedDict[bytes, LayerTensors] = OrderedDict()
        self._lengths: Counter[int] = Counter()
        self._size = 0

    @property
    def is_enabled(self) -> bool:
        return self._budget > 0

    def put(self, ids: Sequence[int], layers: LayerTensors) -> None:
        """Store what was computed from `ids`, one column per id."""
        key = _cache_key(ids)
        if key in self._entries:
            self._evict(key)
        self._entries[key] = layers
        self._lengths[len(ids)] += 1
        self._size += _count_bytes(layers)
        while self._size > self._budget:
            self._evict(next(iter(self._entries)))

    def find_longest(self, ids: Sequence[int]) -> CachedPrefix | None:
        """Return the longest cached prefix of `ids` that leaves at least one token to read."""
        whole = _cache_key(ids)
        for length in sorted(self._lengths, reverse=True):
            key = whole[: length * array("i").itemsize]
            if length < len(ids) and key in self._entries:
                self._entries.move_to_end(key)
                return CachedPrefix(length, self._entries[key])
        return None

    def _evict(self, key: bytes) -> None:
        layers = self._entries.pop(key)
        self._size -= _count_bytes(layers)
        length = len(key) // array("i").itemsize
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]


def _cache_key(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()


def _count_bytes(layers: LayerTensors) -> int:
    return sum(part.nbytes for pair in layers for part in pair)
