"""The researcher without a model, as pure functions.

The `extractive` engine calls only these functions. The researcher keeps
only its report: it reads back the steps in the report and gets passages by their ids.
"""

import json
import re
from collections.abc import Iterable, Sequence

from offing.sdk import ReportDraft, shorten_line
from offing_graphs.extractive.agenda import Agenda, CandidateAction, build_agenda, choose_first_action
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.coverage import list_parts
from offing_graphs.iterresearch.schemas import MAX_REPORT_TOKENS, Call, Round, TurnPhase, Workspace, build_output
from offing_graphs.shared.memory import MAX_GOAL_CHARS, count_new
from offing_graphs.shared.report import build_quote_report
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage
from offing_graphs.shared.token_estimate import estimate_tokens

TAKEN_HEADING, NEXT_PREFIX, FINDINGS_HEADING = "## Steps taken", "Next: ", "## Findings so far"
MAX_STEPS_TOKENS = MAX_REPORT_TOKENS * 3 // 4
"""Maximum number of tokens of the steps in a report.

Steps take precedence over findings, which can be rebuilt from the passages that the steps
name.
"""

_TEXT_PATTERN = r'"(?:[^"\\]|\\.)*"'
_STEP_PATTERN = re.compile(
    rf"(?P<tool>\S+) (?P<goal>{_TEXT_PATTERN})(?: for (?P<query>{_TEXT_PATTERN}))?(?: = (?P<value>{_TEXT_PATTERN}))?"
    r"(?:: (?P<status>\w+), (?P<fresh>\d+) new(?P<ids>(?: E\d+)*))?"
)
_NUMBERED_PATTERN = re.compile(r"(\d+)\. (.+)")
_PART_PATTERN = re.compile(r"\{(\d+)\}")


def choose_turn(inputs: Workspace) -> Round:
    """Choose the next action, or answer if no action would help."""
    parts = list_parts(analyze_task(inputs).sub_questions, inputs.user_messages)
    evidence = _list_known_passages(inputs)
    taken = _list_taken_steps(inputs, parts)
    agenda = build_agenda(inputs.question, parts, taken, evidence, inputs.tools)
    draft = build_quote_report(inputs, evidence, taken)
    if inputs.phase is TurnPhase.FINAL or (inputs.phase is TurnPhase.MIDDLE and agenda.is_complete):
        report = render_report(draft, taken, None, parts)
        return build_output(
            inputs.phase, think=_explain_progress(agenda), report=report, answer=draft, answered=agenda.is_answered
        )
    why = "Nothing that is made for this question can be done."
    move = agenda.actions[0] if agenda.actions else choose_first_action(inputs.question, inputs.tools, why)
    call = _build_request(move, inputs, evidence)
    then = MemoryRecord(turn=0, sub_goal=_render_goal(move), tool=call.tool, args=call.args, status="", finding="")
    return build_output(
        inputs.phase,
        think=move.why,
        report=render_report(draft, taken, then, parts),
        action=call,
    )


def _list_known_passages(inputs: Workspace) -> tuple[RetrievedPassage, ...]:
    """Return the passages of the report and of the last results, in the order of first retrieval."""
    new = (piece for result in inputs.results for piece in result.passages)
    by_id = {piece.id: piece for piece in (*inputs.cited, *new)}
    return tuple(sorted(by_id.values(), key=lambda piece: int(piece.id[1:])))


def _list_taken_steps(inputs: Workspace, parts: tuple[str, ...]) -> tuple[MemoryRecord, ...]:
    """Return the steps in the report, and the step that it announced with its result."""
    taken, then = parse_report(inputs.report, parts)
    if then is None or inputs.result is None:
        return taken
    ids = tuple(piece.id for piece in inputs.result.passages)
    last = then.model_copy(
        update={
            "turn": max((r.turn for r in taken), default=0) + 1,
            "status": inputs.result.status,
            "value": inputs.result.value,
            "evidence": ids,
            "fresh": count_new(ids, taken),
        }
    )
    return (*taken, last)


def _build_request(action: CandidateAction, inputs: Workspace, evidence: tuple[RetrievedPassage, ...]) -> Call:
    card = next((t for t in inputs.tools if t.name == action.tool), None)
    return Call(tool=action.tool, args=build_arguments(action.to_plan(), card, evidence) if card else {})


def _render_goal(action: CandidateAction) -> str:
    return shorten_line(action.sub_goal, MAX_GOAL_CHARS)


def _explain_progress(agenda: Agenda) -> str:
    return f"{agenda.covered_count} of {len(agenda.part_statuses)} parts are answered by passages."


def is_extractive_report(report: str) -> bool:
    """Return whether the report was rendered by this module."""
    return TAKEN_HEADING in report.split("\n")


def render_report(
    draft: ReportDraft, taken_steps: Sequence[MemoryRecord], next_step: MemoryRecord | None, parts: Sequence[str]
) -> str:
    """Render the report of a turn within its limit: findings, the steps taken and the next step.

    `next_step` is `None` if the turn answers. If not all findings fit, the last ones are
    omitted and counted. If not all steps fit, the oldest ones are omitted.
    """
    steps = _take_fitting([f"{r.turn}. {_render_step(r, parts)}" for r in reversed(taken_steps)], MAX_STEPS_TOKENS)
    left_out = len(taken_steps) - len(steps)
    head = [f"({left_out} earlier steps are left out.)"] if left_out else []
    part_lines = [f"{{{n}}} stands for: {shorten_line(part, 120)}" for n, part in sorted(_number_parts(parts))]
    tail = [f"{NEXT_PREFIX}{_render_step(next_step, parts, pending=True)}"] if next_step else []
    below = "\n".join(["", TAKEN_HEADING, *part_lines, *head, *reversed(steps), *tail])
    return _render_findings(draft, MAX_REPORT_TOKENS - estimate_tokens(below) - 40) + "\n" + below


def parse_report(report: str, parts: Sequence[str]) -> tuple[tuple[MemoryRecord, ...], MemoryRecord | None]:
    """Parse the steps taken and the next step. A report of another kind has none."""
    lines = report.split("\n")
    if not is_extractive_report(report):
        return (), None
    below = lines[len(lines) - lines[::-1].index(TAKEN_HEADING) :]
    taken = [
        r for line in below if (m := _NUMBERED_PATTERN.fullmatch(line)) and (r := _parse_step(m[2], int(m[1]), parts))
    ]
    then = next(
        (_parse_step(line.removeprefix(NEXT_PREFIX), 0, parts) for line in below if line.startswith(NEXT_PREFIX)), None
    )
    return tuple(taken), then


def _render_findings(draft: ReportDraft, max_tokens: int) -> str:
    sentences = [
        shorten_line(s.text, 700) + _render_ids(c.evidence for c in s.citations)
        for sec in draft.sections
        for s in sec.sentences
    ]
    lines = [f"- {line}" for line in dict.fromkeys(sentences)]
    fitting = _take_fitting(lines, max_tokens)
    more = [f"({len(lines) - len(fitting)} more findings are left out.)"] if len(fitting) < len(lines) else []
    return "\n".join([FINDINGS_HEADING, *(fitting or ["Nothing yet."]), *more])


def _render_ids(evidence: Iterable[str]) -> str:
    return "".join(f" [{id}]" for id in evidence)


def _take_fitting(lines: Sequence[str], max_tokens: int) -> list[str]:
    """Return the longest prefix of the lines that fits."""
    fitting: list[str] = []
    for line in lines:
        max_tokens -= estimate_tokens(line + "\n")
        if max_tokens < 0:
            break
        fitting.append(line)
    return fitting


def _render_step(record: MemoryRecord, parts: Sequence[str], *, pending: bool = False) -> str:
    query = str(record.args.get("query", ""))
    query_text = f" for {_encode_text(query, parts)}" if query else ""
    value = f" = {_encode_text(record.value, ())}" if record.value else ""
    ids = "".join(f" {id}" for id in record.evidence)
    came = "" if pending else f": {record.status}, {record.fresh} new{ids}"
    return f"{record.tool} {_encode_text(record.sub_goal, parts)}{query_text}{value}{came}"


def _parse_step(line: str, turn: int, parts: Sequence[str]) -> MemoryRecord | None:
    m = _STEP_PATTERN.fullmatch(line)
    if m is None:
        return None
    query = _decode_text(m["query"], parts) if m["query"] else ""
    return MemoryRecord(
        turn=turn,
        sub_goal=_decode_text(m["goal"], parts),
        tool=m["tool"],
        args={"query": query} if query else {},
        status=m["status"] or "",
        finding="",
        value=_decode_text(m["value"], ()) if m["value"] else "",
        evidence=tuple((m["ids"] or "").split()),
        fresh=int(m["fresh"] or 0),
    )


def _encode_text(text: str, parts: Sequence[str]) -> str:
    """Render a text in quotation marks, with {n} in place of part n of the question."""
    for number, part in _number_parts(parts):
        text = text.replace(part, f"{{{number}}}")
    return json.dumps(text, ensure_ascii=False)


def _decode_text(encoded: str, parts: Sequence[str]) -> str:
    known = {str(number): part for number, part in _number_parts(parts)}
    return _PART_PATTERN.sub(lambda m: known.get(m[1], m[0]), str(json.loads(encoded)))


def _number_parts(parts: Sequence[str]) -> list[tuple[int, str]]:
    """Return the parts that can be replaced by their number, longest first.

    Returns an empty list if a part contains a brace, which would be ambiguous.
    """
    can_number = not any("{" in part for part in parts)
    numbered = [(n, part) for n, part in enumerate(parts, 1) if len(part) > 3]
    return sorted(numbered, key=lambda p: (-len(p[1]), p[0])) if can_number else []
