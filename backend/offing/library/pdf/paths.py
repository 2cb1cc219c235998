"""Read the boxes of what is drawn on a page with pypdfium2."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

from offing.library.pdf.pdfium_calls import (
    BoxTuple,
    count_segments,
    list_form_objects,
    list_kinds,
    list_page_objects,
    read_bounds,
)

Matrix = tuple[float, float, float, float, float, float]

MAX_DEPTH = 3
"""Maximum depth of drawings inside drawings."""
MAX_BOX_SEGMENTS = 5
"""Maximum segments of a path that is read as its box: a line or a rectangle."""
MAX_PATH_SEGMENTS = 400
"""Maximum segments of a path that is read as lines. A longer one is a picture."""

_IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def iter_path_boxes(raw: Any, page: int, max_objects: int) -> Iterator[BoxTuple]:
    """Yield a box per straight part of the paths of a page. Nothing if the page has more than `max_objects`.

    `raw` is `pypdfium2.raw`, and `page` the address of a page.
    """
    return _iter_boxes(raw, list_page_objects(page, max_objects), _IDENTITY, 1, max_objects)


def _iter_boxes(raw: Any, objects: Sequence[int], matrix: Matrix, depth: int, max_objects: int) -> Iterator[BoxTuple]:
    kinds = list_kinds(objects)
    paths = [item for item, kind in zip(objects, kinds, strict=True) if kind == raw.FPDF_PAGEOBJ_PATH]
    read = zip(count_segments(paths), read_bounds(paths), strict=True)
    for item, kind in zip(objects, kinds, strict=True):
        if kind == raw.FPDF_PAGEOBJ_PATH:
            count, bounds = next(read)
            if count > MAX_BOX_SEGMENTS:
                yield from _iter_segments(raw, item, count, matrix)
            elif bounds:
                yield bounds if matrix is _IDENTITY else _move_box(matrix, bounds)
        elif kind == raw.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            parts, inner = list_form_objects(item, max_objects), _multiply(_get_matrix(raw, item), matrix)
            yield from _iter_boxes(raw, parts, inner, depth + 1, max_objects // 10)


def _iter_segments(raw: Any, path: int, count: int, matrix: Matrix) -> Iterator[BoxTuple]:
    if count > MAX_PATH_SEGMENTS:
        return
    handle = ctypes.cast(path, raw.FPDF_PAGEOBJECT)
    matrix = _multiply(_get_matrix(raw, path), matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    start = before = (0.0, 0.0)
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(handle, number)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point, kind = _move(matrix, x.value, y.value), raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield _span(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield _span(point, start)
        before = point


def _get_matrix(raw: Any, item: int) -> Matrix:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(ctypes.cast(item, raw.FPDF_PAGEOBJECT), matrix):
        return _IDENTITY
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _multiply(first: Matrix, second: Matrix) -> Matrix:
    """Return the matrix that applies the first and then the second."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _move(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _move_box(matrix: Matrix, box: BoxTuple) -> BoxTuple:
    return _span(_move(matrix, box[0], box[2]), _move(matrix, box[1], box[3]))


def _span(start: tuple[float, float], end: tuple[float, float]) -> BoxTuple:
    return min(start[0], end[0]), max(start[0], end[0]), min(start[1], end[1]), max(start[1], end[1])
