"""Parts of a web page that do not belong to its text: comments, lists of other pages, buttons to share, banners.

They are recognized by the words in their classes and ids. A page may use such a word for its whole text or for most
of it, so a part is left out only if it is small, and all parts of a kind only if they are together.
"""

import re
from importlib import import_module
from typing import Any, Literal

MAX_NOISE_FRACTION = 0.4
"""Maximum fraction of the text that a part may have, and all parts of a kind together, to be left out."""
MAX_NAME_CHARS = 300
"""Maximum code points of the classes and the id of an element that are considered."""

_TAGS = frozenset(("div", "section", "ul", "ol", "p", "span", "table", "header"))
_COMMENTS = "comments? comment-?list comment-?section comment-?area comment-?form respond disqus\\w*"
_OTHERS = """
    related\\w* share sharing share-?\\w+ social\\w* newsletter\\w* breadcrumbs? sidebar\\w* cookies?
    cookie-?\\w+ consent
    adverts? advertisement ads? ad-?slot sponsor\\w* promo\\w* recommend\\w* outbrain\\w* taboola\\w* pagination pager
    subscri\\w+ toolbar menu nav navbox navigation skip-?links? screen-?reader-?text sr-only visually-?hidden
    noprint mw-editsection sharedaddy jump-?to-?nav
"""
_NOTE = re.compile(r"foot-?notes?|end-?notes?|admonition|callout|references", re.IGNORECASE)
Kind = Literal["comments", "others"]


def _compile_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|(?<!has)(?<!with)(?<!non)[\s_-])(?:{'|'.join(words.split())})(?=$|[\s_-])")


_WORDS: dict[Kind, re.Pattern[str]] = {"comments": _compile_words(_COMMENTS), "others": _compile_words(_OTHERS)}


def is_note(element: Any) -> bool:
    """Return whether an element is named as a footnote, a reference or a remark."""
    return (element.get("role") or "").startswith(("doc-footnote", "doc-endnote", "note")) or (
        _NOTE.search(_read_names(element)) is not None
    )


def _read_names(element: Any) -> str:
    return f"{element.get('class') or ''} {element.get('id') or ''}"[:MAX_NAME_CHARS].lower()


def _find_kind(element: Any) -> Kind | None:
    if element.tag not in _TAGS or not (names := _read_names(element).strip()):
        return None
    return next((kind for kind, words in _WORDS.items() if words.search(names) and not _NOTE.search(names)), None)


def find_noise(root: Any) -> frozenset[Any]:
    """Return the elements inside an element that do not belong to its text, in one walk."""
    candidates, at = list[tuple[int, int, Any, Kind]](), 0
    starts = dict[Any, tuple[int, Kind]]()
    for event, element in import_module("lxml.etree").iterwalk(root, events=("start", "end")):
        if event == "start":
            kind = _find_kind(element) if element is not root else None
            if kind:
                starts[element] = (at, kind)
            at += len((element.text or "").strip())
        else:
            if element in starts:
                start, kind = starts[element]
                candidates.append((start, at, element, kind))
            at += len((element.tail or "").strip())
    return _select(candidates, MAX_NOISE_FRACTION * at)


def _select(candidates: list[tuple[int, int, Any, Kind]], limit: float) -> frozenset[Any]:
    """Return the elements of the kinds whose outermost small candidates have at most this length together."""
    totals: dict[Kind, float] = dict.fromkeys(_WORDS, 0.0)
    selected, covered = list[tuple[Any, Kind]](), -1
    for start, end, element, kind in sorted(candidates, key=lambda part: (part[0], -part[1])):
        if end - start > limit:
            continue
        selected.append((element, kind))
        if start >= covered:
            totals[kind] += end - start
            covered = max(covered, end)
    return frozenset(element for element, kind in selected if totals[kind] <= limit)
