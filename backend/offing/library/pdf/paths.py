"""Read the boxes of what is drawn on a page with pypdfium2."""

import ctypes
from collections.abc import Iterator
from typing import Any

BoxTuple = tuple[float, float, float, float]
"""`(x0, x1, y0, y1)` in points."""
Matrix = tuple[float, float, float, float, float, float]

MAX_DEPTH = 3
"""Maximum depth of drawings inside drawings."""
MAX_BOX_SEGMENTS = 5
"""Maximum segments of a path that is read as its box: a line or a rectangle."""
MAX_PATH_SEGMENTS = 400
"""Maximum segments of a path that is read as lines. A longer one is a picture."""

_IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def iter_path_boxes(raw: Any, page: Any, max_objects: int) -> Iterator[BoxTuple]:
    """Yield a box per straight part of the paths of a page. Nothing if the page has more than `max_objects`.

    `raw` is `pypdfium2.raw`, and `page` a page of it.
    """
    count = raw.FPDFPage_CountObjects(page)
    if count <= max_objects:
        for number in range(count):
            yield from _iter_object_boxes(raw, raw.FPDFPage_GetObject(page, number), _IDENTITY, 1, max_objects)


def _iter_object_boxes(raw: Any, item: Any, matrix: Matrix, depth: int, max_objects: int) -> Iterator[BoxTuple]:
    kind = raw.FPDFPageObj_GetType(item)
    if kind == raw.FPDF_PAGEOBJ_PATH:
        yield from _iter_boxes(raw, item, matrix)
    elif kind == raw.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
        count = raw.FPDFFormObj_CountObjects(item)
        inner = _multiply(_get_matrix(raw, item), matrix)
        for number in range(count if count <= max_objects else 0):
            part = raw.FPDFFormObj_GetObject(item, number)
            yield from _iter_object_boxes(raw, part, inner, depth + 1, max_objects // 10)


def _iter_boxes(raw: Any, path: Any, matrix: Matrix) -> Iterator[BoxTuple]:
    count = raw.FPDFPath_CountSegments(path)
    if count > MAX_PATH_SEGMENTS:
        return
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if count <= MAX_BOX_SEGMENTS:
        if raw.FPDFPageObj_GetBounds(path, left, bottom, right, top):
            yield _span(_move(matrix, left.value, bottom.value), _move(matrix, right.value, top.value))
    else:
        yield from _iter_segments(raw, path, count, _multiply(_get_matrix(raw, path), matrix))


def _iter_segments(raw: Any, path: Any, count: int, matrix: Matrix) -> Iterator[BoxTuple]:
    x, y = ctypes.c_float(), ctypes.c_float()
    start = before = (0.0, 0.0)
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point, kind = _move(matrix, x.value, y.value), raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield _span(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield _span(point, start)
        before = point


def _get_matrix(raw: Any, item: Any) -> Matrix:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(item, matrix):
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


def _span(start: tuple[float, float], end: tuple[float, float]) -> BoxTuple:
    return min(start[0], end[0]), max(start[0], end[0]), min(start[1], end[1]), max(start[1], end[1])
