"""Join the texts of a table's cells."""

from collections.abc import Iterable, Sequence

from offing.library.pdf.page_reader import HYPHENS


def join_cell_lines(lines: Iterable[str]) -> str:
    """Return the lines of a cell as one text, with words joined that are broken at a line's end."""
    text = ""
    for line in lines:
        is_broken = text.endswith(tuple(HYPHENS))
        text = text[:-1] + line if is_broken else f"{text} {line}".strip()
    return text


def join_header(rows: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the rows of a header as one row. A text that is repeated below itself counts once."""
    if not rows:
        return ()
    return tuple(
        join_cell_lines(text for n, text in enumerate(column) if text and (n == 0 or column[n - 1] != text))
        for column in zip(*rows, strict=True)
    )
