"""The parts of a page, with their boxes in points. Coordinates grow to the right and upward."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Box(NamedTuple):
    x0: float
    x1: float
    y0: float
    y1: float


class Word(NamedTuple):
    """Characters without a space between them."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float


class Line(NamedTuple):
    """A line of text. `y1 - y0` is the height of its type."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    stands_alone: bool = False
    """Whether the line is a row of cells, which no paragraph includes."""


class Ruling(NamedTuple):
    """A drawn line. Horizontal if `y0 == y1`, else vertical."""

    x0: float
    x1: float
    y0: float
    y1: float


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was found on a page. `header` is empty if no row could be identified as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[float, ...]
    """The horizontal center of each column."""
    box: Box
    is_ruled: bool = False
    title: str = ""
    """The text of a cell above all columns."""


Element = Line | Table


def join_boxes(parts: Sequence[Word] | Sequence[Line]) -> Box:
    """Return the box around all parts. There is at least one part."""
    x0, x1, y0, y1 = list(zip(*parts, strict=True))[1:5]
    return Box(min(x0), max(x1), min(y0), max(y1))
