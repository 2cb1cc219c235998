"""Where in the text of a document its pages begin.

A note at the foot of a page can follow a sentence that goes on over the page, so pages need not be in order, and a
page can begin several times.
"""

from collections.abc import Callable, Iterable, Sequence

PageStarts = Sequence[tuple[int, int]]
"""Positions in code points, ascending, each with the number of the page, from 1, from which the text after it is."""


def convert_text(text: str, starts: PageStarts, convert: Callable[[str], str]) -> tuple[str, PageStarts]:
    """Return a text converted, and where its pages begin after that.

    `convert` must do the same to the parts of a text as to the whole.
    """
    converted = convert(text)
    if converted == text or not starts:
        return converted, starts
    moved, length, last = list[tuple[int, int]](), 0, 0
    for at, page in starts:
        length += len(convert(text[last:at]))
        moved.append((length, page))
        last = at
    return converted, moved


def drop_repeated_pages(starts: Iterable[tuple[int, int]]) -> PageStarts:
    """Return the starts without those of the page that the text before them is from."""
    starts_by_page = list[tuple[int, int]]()
    for start in starts:
        if not starts_by_page or starts_by_page[-1][1] != start[1]:
            starts_by_page.append(start)
    return starts_by_page
