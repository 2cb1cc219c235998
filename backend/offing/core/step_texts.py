"""What the title and the parts of a step's detail say, for steps whose payload tells no summary.

Lists of steps leave large payloads out, and several parts of a detail say how a call was made. What people, models and
other authors' graphs write has no code.
"""

from offing.core.coded_text import CodedText, TextCatalog
from offing.core.run_texts import RUN_TEXTS
from offing.core.step import Step, StepKind

SEPARATOR = " \u00b7 "
"""Between the parts of a step's detail."""

TEXT = "text"
"""Stands for a part without a code, which is its parameter `text`."""

STEP_TITLES = TextCatalog(
    {
        "calculations": "Calculations for the answer",
        "follow_up_kind": "Kind of the follow-up: {kind}",
        "earlier_report": "Earlier report: {title}",
        "earlier_report_deleted": "The earlier report was deleted",
        "plan_requested_anew": "Another plan was requested",
        "sections": "{count} sections",
        "answer": "Answer: {text}",
        "summary": "Summary: {text}",
    }
)

STEP_DETAILS = TextCatalog(
    {
        "passage_of_source": "1 passage from 1 source",
        "passages_of_source": "{passages} passages from 1 source",
        "passages_of_sources": "{passages} passages from {sources} sources",
        "passages": "{passages} passages",
        "nothing_found": "nothing found",
        "page": "1 page",
        "pages": "{pages} pages",
        "characters": "characters {start} to {end} of {total}",
        "from_origin": "from {origin}",
        "call_of_batch": "call {number} of {size} at once",
        "no_text": "no text",
        "one_part": "one part",
        "passage_omitted": "1 passage not shown",
        "passages_omitted": "{count} passages not shown",
        "waited": "waited {seconds} s for other calls of the provider",
        "answered_by_fallback": "answered by the fallback {model} ({reasons})",
        "repeated": "repeated, because step {seqs} recorded a different request",
        "documents_deleted": "{count} cited documents were deleted",
        "kept": "kept",
        "set_aside": "set aside",
        "sentences_and_words": "{sentences} sentences, {words} words",
        "new_subgoal": "new subgoal: {subgoal}",
        "for_subgoal": "for: {subgoal}",
        "asked_because": RUN_TEXTS.templates["asked_because"],
    }
)

_WORDS_OF_PEOPLE = frozenset({StepKind.USER_MESSAGE, StepKind.INPUT_RESPONSE})


def find_title(step: Step) -> CodedText | None:
    """Return what the title of a step says. `None` means that no code stands for it."""
    if step.kind is StepKind.INPUT_REQUEST:
        return RUN_TEXTS.find(step.title)
    return None if step.kind in _WORDS_OF_PEOPLE else STEP_TITLES.find(step.title)


def find_detail_parts(step: Step) -> tuple[CodedText, ...]:
    """Return what the parts of a step's detail say. Empty means that no code stands for any of them."""
    if step.kind in _WORDS_OF_PEOPLE or not step.detail:
        return ()
    parts = [(part, STEP_DETAILS.find(part)) for part in step.detail.split(SEPARATOR)]
    if not any(coded for _, coded in parts):
        return ()
    return tuple(coded or CodedText(TEXT, {"text": part}) for part, coded in parts)
