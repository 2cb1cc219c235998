"""Call functions of pdfium for many characters or objects of a page at once.

A call takes pdfium a fraction of the time in which ctypes converts the arguments. So handles and pointers are passed as
plain addresses, one `map` makes all calls, and pdfium writes the results one after the other into one buffer.
"""

import ctypes
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple

BoxTuple = tuple[float, float, float, float]
"""`(x0, x1, y0, y1)` in points."""

Call = Callable[..., Any]


class Boxes(NamedTuple):
    """The coordinates of many boxes in points: those of a box are at the same place of each list."""

    x0: list[float]
    x1: list[float]
    y0: list[float]
    y1: list[float]


@cache
def bind_call(name: str, *types: Any) -> Call:
    """Return a function of pdfium that takes handles and pointers as addresses.

    `types` are the type of its result and those of its arguments. The interpreter's lock is kept during a call, since
    releasing it takes longer than most calls.
    """
    from pypdfium2 import raw

    return ctypes.PYFUNCTYPE(*types)(get_address(getattr(raw, name)))


def get_address(handle: Any) -> int:
    """Return the address of a handle or function of `pypdfium2.raw`."""
    address = ctypes.cast(handle, ctypes.c_void_p).value
    assert address is not None
    return address


def read_char_boxes(text_page: int, positions: Sequence[int]) -> Boxes:
    """Return the boxes of characters by their positions in pdfium's list of characters.

    A character without a box gets the box of the one before it.
    """
    read = bind_call("FPDFText_GetLooseCharBox", ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    buffer = _make_buffer(len(positions))
    start, bytes_per_box = buffer.buffer_info()[0], 4 * buffer.itemsize
    rects = range(start, start + len(positions) * bytes_per_box, bytes_per_box)
    succeeded = list(map(read, repeat(text_page), positions, rects))
    if not all(succeeded):
        for number in (n for n, is_known in enumerate(succeeded) if n and not is_known):
            buffer[4 * number : 4 * number + 4] = buffer[4 * number - 4 : 4 * number]
    return Boxes(*(buffer[n::4].tolist() for n in (0, 2, 3, 1)))


def find_char_positions(text_page: int, positions: Iterable[int]) -> list[int]:
    """Return the positions in pdfium's list of characters for positions in its text."""
    find = bind_call("FPDFText_GetCharIndexFromTextIndex", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    return list(map(find, repeat(text_page), positions))


def read_angle(text_page: int, position: int) -> float:
    """Return the angle of a character in radians, clockwise."""
    return bind_call("FPDFText_GetCharAngle", ctypes.c_float, ctypes.c_void_p, ctypes.c_int)(text_page, position)


def list_page_objects(page: int, limit: int) -> list[int]:
    """Return the objects of a page. Empty if there are more than `limit`."""
    return _list_objects("FPDFPage_CountObjects", "FPDFPage_GetObject", page, limit)


def list_form_objects(form: int, limit: int) -> list[int]:
    """Return the objects of a drawing inside a page. Empty if there are more than `limit`."""
    return _list_objects("FPDFFormObj_CountObjects", "FPDFFormObj_GetObject", form, limit)


def _list_objects(count_name: str, get_name: str, parent: int, limit: int) -> list[int]:
    count = bind_call(count_name, ctypes.c_int, ctypes.c_void_p)(parent)
    get = bind_call(get_name, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    return list(map(get, repeat(parent), range(count))) if count <= limit else []


def list_kinds(objects: Iterable[int]) -> list[int]:
    """Return the constant `FPDF_PAGEOBJ_…` of each object."""
    return list(map(bind_call("FPDFPageObj_GetType", ctypes.c_int, ctypes.c_void_p), objects))


def count_segments(paths: Iterable[int]) -> list[int]:
    """Return the number of segments of each path."""
    return list(map(bind_call("FPDFPath_CountSegments", ctypes.c_int, ctypes.c_void_p), paths))


def read_bounds(objects: Sequence[int]) -> list[BoxTuple | None]:
    """Return the box of each object in the coordinates of what includes it. `None` if pdfium knows none."""
    read = bind_call("FPDFPageObj_GetBounds", ctypes.c_int, *[ctypes.c_void_p] * 5)
    buffer = _make_buffer(len(objects))
    start, size = buffer.buffer_info()[0], buffer.itemsize
    places = [range(start + n * size, start + len(buffer) * size, 4 * size) for n in range(4)]
    succeeded = list(map(read, objects, *places))
    boxes = zip(*(buffer[n::4].tolist() for n in (0, 2, 1, 3)), strict=True)
    return [box if is_known else None for box, is_known in zip(boxes, succeeded, strict=True)]


def _make_buffer(boxes: int) -> "array[float]":
    return array("f", bytes(16 * boxes))
