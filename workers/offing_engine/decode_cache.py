"""Keys and values of the rows that decode together.

All rows end at the same column, so that a step writes one column for all of them and no row has a
gap: row r has the columns [end - length_r, end), and the columns before them are unused. A removed
row is overwritten by the last one. Spare columns and rows are allocated, so that a step copies
nothing.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# transformers' cache classes have no types.

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

SPARE_COLUMNS = 128


class LayerCache(CacheLayerMixin):
    """Keys and values of one layer, [slots, heads, columns, width], limited to the window in use."""

    is_sliding = False

    def __init__(self, window: "CacheWindow") -> None:
        super().__init__()
        self._window = window

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        slots, columns = self._window.slots, self._window.columns
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys = key_states.new_zeros((slots, key_states.shape[1], columns, key_states.shape[3]))
        self.values = value_states.new_zeros((slots, value_states.shape[1], columns, value_states.shape[3]))
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the new columns of all rows, and return all columns of all rows including them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        w = self._window
        assert self.keys is not None
        assert self.values is not None
        until = w.end + key_states.shape[2]
        self.keys[: w.rows, :, w.end : until] = key_states
        self.values[: w.rows, :, w.end : until] = value_states
        return self.keys[: w.rows, :, w.start : until], self.values[: w.rows, :, w.start : until]

    def write_rows(self, first: int, left: int, keys: Tensor, values: Tensor) -> None:
        """Write rows from `first` on, from column `left` on."""
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        assert self.keys is not None
        assert self.values is not None
        n, width = keys.shape[0], keys.shape[2]
        self.keys[first : first + n, :, left : left + width] = keys
        self.values[first : first + n, :, left : left + width] = values

    def copy_columns(self, source: int, target: int, left: int, end: int) -> None:
        """Overwrite columns [left, end) of one row with those of another."""
        assert self.keys is not None
        assert self.values is not None
        for part in (self.keys, self.values):
            part[target, :, left:end] = part[source, :, left:end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._window.end - self._window.start + query_length, 0

    def get_seq_length(self) -> int:
        return self._window.end - self._window.start

    def get_max_length(self) -> int:
        return -1


class CacheWindow:
    """Part of the tensors that is in use: `rows` rows and the columns [start, end)."""

    def __init__(self, slots: int, columns: int) -> None:
        self.slots, self.columns = slots, columns
        self.rows = self.start = self.end = 0


class DecodeCache:
    """Key-value cache of a decode batch."""

    def __init__(self, layers: int) -> None:
        self._count = layers
        self._lengths: list[int] = []
        self._window, self._layers = self._allocate(0, 0)

    @property
    def lengths(self) -> Sequence[int]:
        """Number of columns of each row."""
        return self._lengths

    @property
    def width(self) -> int:
        """Number of columns of the longest row."""
        return max(self._lengths, default=0)

    @property
    def cells(self) -> int:
        """Number of allocated rows times columns."""
        return self._window.slots * self._window.columns

    def as_model_cache(self) -> Cache:
        """Return the cache for a forward pass of one new column per row. Call `advance` afterwards."""
        self._reserve(len(self._lengths), self.width, 1)
        self._window.rows, self._window.start = len(self._lengths), self._window.end - self.width
        return Cache(layers=[*self._layers])

    def advance(self) -> None:
        """Record that the forward pass has written one column."""
        self._window.end += 1
        self._lengths = [length + 1 for length in self._lengths]

    def add_rows(self, past: Sequence[tuple[Tensor, Tensor]], lengths: Sequence[int]) -> None:
        """Add rows from keys and values [n, heads, width, _] per layer.

        The last `lengths[i]` columns of row i count.
        """
        width = past[0][0].shape[2]
        first = len(self._lengths)
        self._reserve(first + len(lengths), max(width, self.width), SPARE_COLUMNS)
        for layer, (keys, values) in zip(self._layers, past, strict=True):
            layer.write_rows(first, self._window.end - width, keys, values)
        self._lengths.extend(lengths)

    def remove_row(self, row: int) -> None:
        """Remove a row. The last row moves to its place."""
        last = len(self._lengths) - 1
        if row != last:
            left = self._window.end - self._lengths[last]
            for layer in self._layers:
                layer.copy_columns(last, row, left, self._window.end)
            self._lengths[row] = self._lengths[last]
        self._lengths.pop()

    def copy_row(self, row: int) -> list[tuple[Tensor, Tensor]]:
        """Return a copy of a row's keys and values, [heads, length, _] per layer."""
        here = slice(self._window.end - self._lengths[row], self._window.end)
        pairs = [(layer.keys, layer.values) for layer in self._layers]
        return [(k[row, :, here].clone(), v[row, :, here].clone()) for k, v in pairs if k is not None and v is not None]

    def _allocate(self, slots: int, columns: int) -> tuple[CacheWindow, list[LayerCache]]:
        window = CacheWindow(slots, columns)
        return window, [LayerCache(window) for _ in range(self._count)]

    def _reserve(self, rows: int, left: int, right: int) -> None:
        """Ensure `rows` slots, `left` columns before the common end and `right` free columns after it."""
        w = self._window
        if rows <= w.slots and left <= w.end and w.end + right <= w.columns:
            return
        slots = w.slots if rows <= w.slots else _next_power_of_two(rows)
        columns = left + max(right, SPARE_COLUMNS, left // 2)
        if rows == 0 or not self._lengths:
            self._window, self._layers = self._allocate(slots, columns)
            self._window.end = left
            return
        self._move(slots, columns, left)

    def _move(self, slots: int, columns: int, end: int) -> None:
        """Copy the rows into new tensors, where they end at column `end`."""
        old, width, count = self._window, self.width, len(self._lengths)
        window, layers = self._allocate(slots, columns)
        for layer, before in zip(layers, self._layers, strict=True):
            assert before.keys is not None
            assert before.values is not None
            here = slice(old.end - width, old.end)
            layer.write_rows(0, end - width, before.keys[:count, :, here], before.values[:count, :, here])
        window.end = end
        self._window, self._layers = window, layers


def _next_power_of_two(rows: int) -> int:
    """Round up to a power of two."""
    return 1 << (rows - 1).bit_length()


def valid_mask(lengths: Tensor, width: int) -> Tensor:
    """Return [rows, width]: whether a column belongs to its row, where rows end at the last column."""
    return torch.arange(width, device=lengths.device) >= (width - lengths)[:, None]
