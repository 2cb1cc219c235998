"""The reference of a task that is made from a run: what people said about its report, as far as scorers can use it.

The functions are pure. Texts of people, models and documents are data: they become answers, ranges and quotes beside
criteria.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from offing.core.prompt_library import to_single_line
from offing.core.report import Report
from offing.core.scoring import Criterion, ReferenceEvidence, strip_markup
from offing.core.training_signal import SignalKind, TextOrigin, TrainingSignal

MAX_CRITERION_CHARS = 600
"""Maximum code points of a rejected sentence in a rubric."""

REJECTED_CRITERION = "The report does not state what the rejected sentence states."
"""Text of the criterion of a rejected sentence. The words of the sentence are never part of a criterion's text."""

MAX_CRITERIA = 20
"""Maximum number of rejected sentences in a rubric, the first ones of the report."""


@dataclass(frozen=True, slots=True)
class SignalLimits:
    """What a signal must be to count."""

    min_rating: float = 0.5
    """Minimum mean rating of a report whose answer counts as right, -1 to 1."""
    max_answer_chars: int = 200
    """Maximum code points of an answer of a run. A longer one is no reference, because few answers would match it."""


@dataclass(frozen=True, slots=True)
class RunReference:
    """A reference and the signals that it was made from."""

    answer: str | None
    """`None` means that the right answer is unknown."""
    answer_origin: TextOrigin | None
    """Who wrote the words of the answer. `None` without an answer."""
    evidence: tuple[ReferenceEvidence, ...]
    """Ranges that accepted sentences cite, without the words of the documents."""
    rubric: tuple[Criterion, ...]
    """One criterion for each rejected sentence: that the report does not state it."""
    signals: tuple[TrainingSignal, ...]


def build_run_reference(
    own: Report | None, edited: Report | None, signals: Sequence[TrainingSignal], limits: SignalLimits
) -> RunReference | None:
    """Return the reference of a run's task. `None` means that its signals state nothing that could be scored.

    `own` is what the run wrote, `edited` the newest version that a person saved; `None` means that there is none.
    """
    edits = {one.report_version for one in signals if one.kind is SignalKind.REPORT_EDIT}
    latest = _keep_latest(one for one in signals if one.report_version not in edits)
    answer, origin, used = _find_answer(own, edited, signals, latest, limits)
    verdicts = _judge_sentences(latest)
    evidence = _cite_accepted(own, verdicts)
    rubric = _forbid_rejected(own, verdicts)
    if answer is None and not evidence and not rubric:
        return None
    sentences = [one for one in latest if one.kind is SignalKind.SENTENCE_RATING and one.value]
    return RunReference(answer, origin, evidence, rubric, (*used, *sentences))


def _find_answer(
    own: Report | None,
    edited: Report | None,
    signals: Sequence[TrainingSignal],
    latest: Sequence[TrainingSignal],
    limits: SignalLimits,
) -> tuple[str | None, TextOrigin | None, list[TrainingSignal]]:
    """Return the newest correction or edit of the answer, else the answer of a well rated report."""
    own_answer = _read_answer(own)
    edited_answer = _read_answer(edited)
    for one in reversed(signals):
        if one.kind is SignalKind.ANSWER_CORRECTION:
            return one.text, one.text_origin, [one]
        is_edit = one.kind is SignalKind.REPORT_EDIT and one.text_origin is TextOrigin.PERSON
        if is_edit and edited_answer and edited_answer != own_answer and len(edited_answer) <= limits.max_answer_chars:
            return edited_answer, TextOrigin.PERSON, [one]
    ratings = [one for one in latest if one.kind is SignalKind.REPORT_RATING and one.value is not None]
    values = [one.value for one in ratings if one.value is not None]
    if values and sum(values) / len(values) >= limits.min_rating and 0 < len(own_answer) <= limits.max_answer_chars:
        return own_answer, TextOrigin.MODEL, ratings
    return None, None, []


def _read_answer(report: Report | None) -> str:
    return strip_markup(report.answer.text) if report is not None and report.answer is not None else ""


def _keep_latest(signals: Iterable[TrainingSignal]) -> list[TrainingSignal]:
    """Return the latest signal of each person about each thing. `signals` is given oldest first."""
    latest = {(one.kind, one.given_by, one.sentence_id): one for one in signals}
    return list(latest.values())


def _judge_sentences(latest: Sequence[TrainingSignal]) -> Mapping[str, float]:
    """Return the sum of people's ratings by sentence."""
    verdicts = dict[str, float]()
    for one in latest:
        if one.kind is SignalKind.SENTENCE_RATING and one.sentence_id and one.value is not None:
            verdicts[one.sentence_id] = verdicts.get(one.sentence_id, 0.0) + one.value
    return verdicts


def _cite_accepted(own: Report | None, verdicts: Mapping[str, float]) -> tuple[ReferenceEvidence, ...]:
    if own is None:
        return ()
    accepted = {n for s in own.sentences() if verdicts.get(s.id, 0) > 0 for n in s.citations}
    return tuple(
        ReferenceEvidence(source=str(one.source_id), start=one.span.start, end=one.span.end)
        for one in own.citations
        if one.number in accepted
    )


def _forbid_rejected(own: Report | None, verdicts: Mapping[str, float]) -> tuple[Criterion, ...]:
    rejected = [s.text for s in own.sentences() if verdicts.get(s.id, 0) < 0] if own is not None else []
    texts = [to_single_line(text, MAX_CRITERION_CHARS) for text in rejected[:MAX_CRITERIA]]
    return tuple(Criterion(REJECTED_CRITERION, rejected=text) for text in texts)
