"""A finished tool call as a model reads it whole: passages with their ids and places, values, or why there is nothing.

A pure function of the recorded step, so that what was said once is said the same ever after. Nothing is cut silently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offing.sdk import Evidence, Span, ToolResult, ToolStatus, shortened
from offing_graphs.parts.findings import value_of
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.prompting import data

LONGEST_MESSAGE = 800
"""Code points of the reason why a call failed."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a model is shown of a call, and the passages among it, in the order in which they came back."""

    text: str
    shown: tuple[Evidence, ...] = ()


def observed(result: ToolResult, retrieved: Mapping[Span, Evidence], tokens: int) -> Observation:
    """What came back, within so many estimated tokens; how much is left out is said.

    `retrieved`: the run's passages.
    """
    if result.status is not ToolStatus.OK:
        return Observation(data(shortened(result.message or str(result.status), LONGEST_MESSAGE)))
    back = tuple(retrieved[span] for span in result.spans if span in retrieved)
    if not back:
        return Observation(data(value_of(result) or "Nothing was found."))
    shown = _fitting(back, tokens)
    left = len(back) - len(shown)
    more = f"\n{left} of {len(back)} passages are not shown, because the result is too long." if left else ""
    return Observation("\n".join(map(_passage, shown)) + more, shown)


def _fitting(back: Sequence[Evidence], tokens: int) -> tuple[Evidence, ...]:
    """The first passages that fit together; the first one always."""
    used, shown = 0, 0
    for piece in back:
        used += tokens_of(_passage(piece))
        if shown and used > tokens:
            break
        shown += 1
    return tuple(back[:shown])


def _passage(piece: Evidence) -> str:
    place = f"{piece.title} \u203a {piece.heading}" if piece.heading else piece.title
    head = f"Passage {piece.id} (source {piece.source}, {piece.span.start} to {piece.span.end})"
    return head + "\n" + data(shortened(place) + "\n" + piece.text)
