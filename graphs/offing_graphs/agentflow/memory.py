"""The run's memory: how a finished tool call becomes a record, and how records and passages are read back.

Records live as steps; how they are bounded in a prompt is in `prompts`.
"""

import json
from collections.abc import Iterable, Sequence

from offing.sdk import Evidence, Span, Step, StepDraft, StepKind, ToolResult, ToolStatus, shortened
from offing_graphs.agentflow.extractive_quotes import telling_sentence
from offing_graphs.agentflow.shapes import Piece, Plan, Record, Verdict

KEPT = 64
"""Records read back at most; older ones stay in the run's steps."""
SEEN = 240
"""Passages read back at most."""
EXTRACT = 240
"""Code points of one passage in a record."""
EXTRACTS = 4
"""Passages quoted in a record."""
FINDING = 1_600
"""Code points of a finding."""


def pieces(evidence: Iterable[Evidence]) -> tuple[Piece, ...]:
    """Retrieved passages as the roles see them."""
    return tuple(
        Piece(
            id=e.id,
            source=str(e.source),
            artefact=str(e.span.artefact),
            start=e.span.start,
            end=e.span.end,
            title=e.title,
            heading=e.heading,
            name=e.name,
            text=e.text,
        )
        for e in evidence
    )


def records(steps: Iterable[Step]) -> tuple[Record, ...]:
    """Memory steps as records."""
    return tuple(Record.model_validate(step.payload) for step in steps)


def brought_back(result: ToolResult, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The passages that a call returned, in the order in which it returned them."""
    by_place = {_place(e.span): e for e in evidence}
    return tuple(by_place[place] for place in map(_place, result.spans) if place in by_place)


def _place(span: Span) -> tuple[str, int, int]:
    return str(span.artefact), span.start, span.end


def record_of(
    plan: Plan, result: ToolResult, back: Sequence[Evidence], fresh: int, turn: int, verdict: Verdict | None
) -> Record:
    """What a turn did and found. `fresh`: how many of `back` the run had not seen before."""
    return Record(
        turn=turn,
        sub_goal=shortened(plan.sub_goal, 400),
        tool=result.tool,
        args=result.args,
        status=result.status,
        finding=_finding(plan, result, back),
        value=value_of(result),
        evidence=tuple(e.id for e in back),
        fresh=fresh,
        verdict_before=shortened(verdict.analysis, 240) if verdict else "",
    )


def _finding(plan: Plan, result: ToolResult, back: Sequence[Evidence]) -> str:
    if result.status is not ToolStatus.OK:
        return shortened(result.message or str(result.status), EXTRACT)
    if back:
        return "\n".join(_extract(e, plan.sub_goal) for e in back[:EXTRACTS])[:FINDING]
    if result.spans:
        return "Nothing that was not known."
    return value_of(result) or "Nothing was found."


def value_of(result: ToolResult) -> str:
    """A result that is no passage, on one line. Empty: there is none."""
    content = result.content
    if result.status is not ToolStatus.OK or result.spans or not content or any(v == [] for v in content.values()):
        return ""
    if "expression" in content and "text" in content:
        return shortened(f"{content['expression']} = {content['text']}", EXTRACT)
    return shortened(json.dumps(content, ensure_ascii=False, sort_keys=True), FINDING)


def _extract(evidence: Evidence, goal: str) -> str:
    place = f"{evidence.id} {shortened(evidence.title, 60)}"
    where = f"{place} \u203a {shortened(evidence.heading, 60)}" if evidence.heading else place
    return f"{where} [{evidence.span.start}-{evidence.span.end}]: " + shortened(
        telling_sentence(evidence.text, goal), EXTRACT
    )


def step_of(record: Record) -> StepDraft:
    """The record as a step to append."""
    ok = record.status == ToolStatus.OK
    count = len(record.evidence)
    found = f"{count} passage{'s' * (count != 1)}, {record.fresh} new" if count else shortened(record.finding)
    return StepDraft(
        kind=StepKind.MEMORY,
        title=shortened(record.sub_goal),
        payload=record.model_dump(mode="json"),
        label="memory",
        detail=found if ok else shortened(record.finding),
        ok=ok,
        turn=record.turn,
    )
