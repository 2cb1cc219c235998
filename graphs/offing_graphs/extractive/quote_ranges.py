"""How much of a paragraph is quoted with its best sentence.

A sentence that says everything itself is quoted alone. Where the heading or the title carries the
subject, the other sentences of the paragraph speak of the same subject without naming it, so they
are quoted too, in their order and without gaps.
"""

import re
from collections.abc import Sequence

from offing_graphs.extractive.line_scores import ScoredLine
from offing_graphs.extractive.lines import MAX_WHOLE_PARAGRAPH_CHARS, find_block
from offing_graphs.extractive.readability import MAX_QUOTE_CHARS, find_quote_end, is_dangling
from offing_graphs.extractive.text_units import Unit, measure_width, split_units
from offing_graphs.extractive.word_forms import is_unspaced

MIN_SUBJECT_WEIGHT = 0.3
"""Minimum weight of the question's words in heading and title for a text that is about the question's subject."""
MAX_SUBJECT_CHARS = 1_200
"""Maximum width of a quote from a text that is about the question's subject, see `measure_width`."""
MAX_EXTRACT_CHARS = 100
"""Maximum width to which another quote is extended with the sentences that follow.

Only a fragment is extended. A full sentence is longer, and its answer seldom continues in the next one.
"""

_OPEN_CHINESE_QUESTION = re.compile("为什么|为何|如何|怎么|怎样|原因")
"""Chinese questions that one sentence seldom answers.

Others name the subject of the title again in almost every case, so that its weight does not distinguish them.
"""


def find_quote_range(hit: ScoredLine, part: str, is_brief: bool = False) -> tuple[int, int]:
    """Return the range of the passage's text that is quoted for a line: code points, without the end.

    A brief quote does not add the other sentences of a paragraph about the subject.
    """
    text = hit.line.passage.text
    block, at = _find_paragraph(hit)
    is_about = not is_brief and _is_about_subject(hit, part)
    whole = measure_width(text[block[0].start : block[-1].end])
    if whole <= (MAX_SUBJECT_CHARS if is_about else MAX_WHOLE_PARAGRAPH_CHARS):
        return block[0].start, block[-1].end
    start, end = _extend(text, block, at, MAX_SUBJECT_CHARS if is_about else MAX_EXTRACT_CHARS)
    if is_about:
        return _prepend(text, block[:at], start, end), end
    return start, start + find_quote_end(text[start:end])


def _find_paragraph(hit: ScoredLine) -> tuple[Sequence[Unit], int]:
    """Return the units of the paragraph of a line, and its position among them."""
    all_units = split_units(hit.line.passage.text)
    at = all_units.index(hit.line.unit)
    first, last = find_block(all_units, at)
    return all_units[first : last + 1], at - first


def _is_about_subject(hit: ScoredLine, part: str) -> bool:
    """Return whether heading and title carry the subject of a question that several sentences may answer."""
    return hit.subject_weight >= MIN_SUBJECT_WEIGHT and (
        not is_unspaced(part) or bool(_OPEN_CHINESE_QUESTION.search(part))
    )


def _extend(text: str, block: Sequence[Unit], at: int, max_width: int) -> tuple[int, int]:
    """Return a sentence with the one that it refers to and those that follow within the width."""
    start, end = block[at].start, block[at].end
    if at and is_dangling(text[start:end]) and measure_width(text[block[at - 1].start : end]) <= MAX_QUOTE_CHARS:
        start = block[at - 1].start
    for unit in block[at + 1 :]:
        if measure_width(text[start : unit.end]) > max_width or text.startswith("See ", unit.start):
            break
        end = unit.end
    return start, end


def _prepend(text: str, before: Sequence[Unit], start: int, end: int) -> int:
    """Return the start of the earliest sentence from which the quote stays within its maximum width."""
    for unit in reversed(before):
        if measure_width(text[unit.start : end]) > MAX_SUBJECT_CHARS:
            break
        start = min(start, unit.start)
    return start
