"""What a step says, as a code with parameters, so that a client can say it in the reader's language.

A summary is read from the payload, so that steps of any age have one. The code stands for the texts that this code base
writes into `title` and `detail`; what people, models and other authors' graphs write has no code and is left unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from offing.core.plan_outline import CONSUMED_FIELD, PLAN_FIELD
from offing.core.provenance import parse_origin
from offing.core.step import Step, StepKind
from offing.core.step_codes import StepSummary, StepSummaryCode, SummaryValue
from offing.core.tool_batch import BATCH

Payload = Mapping[str, Any]

SUMMARIZED_CALLS = frozenset({"check", "clarify", "correct"})
"""Labels of role calls that have a summary. Lists of steps do not read the large payloads of the others."""


def summarize_step(step: Step) -> StepSummary | None:
    """Return what a step says. `None` means that its title and detail say it, and that no code stands for them."""
    summarize = _BY_KIND.get(step.kind)
    try:
        return summarize(step) if summarize else None
    except (KeyError, TypeError, ValueError, AttributeError):
        # Graphs of other authors may record anything under the same labels.
        return None


def _summarize_resumed(step: Step) -> StepSummary | None:
    payload = step.payload
    match payload.get("after"):
        case None:
            return StepSummary(StepSummaryCode.RESUMED) if not payload else None
        case "lost worker":
            return StepSummary(StepSummaryCode.RECOVERED, {"count": _count(payload["read_back"])})
        case "fork":
            return StepSummary(StepSummaryCode.FORKED, {"seq": _count(payload["at"]), "run": _text(payload["run"])})
        case "upgrade":
            versions = {"before": _text(payload["from"])[:12], "after": _text(payload["to"])[:12]}
            return StepSummary(StepSummaryCode.UPGRADED, versions)
        case _:
            return None


def _summarize_ended(step: Step) -> StepSummary:
    reason, error = _text(step.payload["stop_reason"]), _text(step.payload.get("detail", ""))
    return StepSummary(StepSummaryCode.ENDED, {"reason": reason, "error": error and step.detail})


def _summarize_message(step: Step) -> StepSummary | None:
    items = step.payload.get(PLAN_FIELD)
    return StepSummary(StepSummaryCode.PLAN_CHANGED, {"parts": [_text(i["text"]) for i in items]}) if items else None


def _summarize_note(step: Step) -> StepSummary | None:
    summarize = _BY_LABEL.get(step.label)
    if summarize is not None:
        return summarize(step.payload)
    if "narrow" in step.payload:
        reason = _text(step.payload["rejected"])
        rejected = StepSummary(StepSummaryCode.TOOL_POLICY_KEPT, {"reason": reason})
        return rejected if reason else StepSummary(StepSummaryCode.TOOL_POLICY_RESTRICTED)
    return None


def _summarize_messages_read(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.MESSAGES_READ, {"seqs": [_count(seq) for seq in payload["messages"]]})


def _summarize_plan_read(payload: Payload) -> StepSummary:
    parts = _texts(payload["parts"])
    return StepSummary(StepSummaryCode.PLAN_READ, {"seq": _count(payload[CONSUMED_FIELD]), "parts": parts})


def _summarize_continued(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.CONTINUED, {"parts": _texts(payload["open"])})


def _summarize_skipped(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.ROLE_SKIPPED, {"role": _text(payload["skipped_role"])})


def _summarize_window(payload: Payload) -> StepSummary:
    parameters = {"role": _text(payload["role"]), "tokens": _count(payload["context_tokens"])}
    return StepSummary(StepSummaryCode.WINDOW_LEARNED, parameters)


def _summarize_follow_up(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.FOLLOW_UP, {name: _text(payload[name]) for name in ("kind", "chosen_by", "why")})


def _summarize_route(payload: Payload) -> StepSummary:
    mode = _text(payload["mode"])
    if "open" in payload:
        return StepSummary(StepSummaryCode.MODE_CHANGED, {"mode": mode, "parts": _texts(payload["open"])})
    return StepSummary(StepSummaryCode.MODE_CHOSEN, {"mode": mode})


def _summarize_reviewed_plan(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.PLAN_EDITED, {"parts": _texts(payload["output"]["sub_questions"])})


def _summarize_clarification(payload: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.QUESTION_CLARIFIED, {"response": _text(payload["response"])})


def _summarize_verification(step: Step) -> StepSummary | None:
    if _has_notes(step.payload):
        return None
    output = step.payload["output"]
    covered = [_flag(one["covered"]) for one in output["coverage"]]
    parameters = {"covered": sum(covered), "parts": len(covered), "stop": _flag(output["stop"])}
    return StepSummary(StepSummaryCode.VERDICT, {**parameters, "omitted": step.payload.get("omitted_passages", 0)})


def _has_notes(payload: Payload) -> bool:
    """Return whether a detail also says how a call was made, which no code stands for."""
    return "anew" in payload or "fallback" in payload or payload.get("slot_wait_ms", 0) >= 1000


def _summarize_role_call(step: Step) -> StepSummary | None:
    if step.label not in SUMMARIZED_CALLS or _has_notes(step.payload) or "omitted_passages" in step.payload:
        return None
    output = step.payload["output"]
    match step.label:
        case "check":
            verdicts = [_text(one["verdict"]) for one in output["judgments"]]
            counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
            return StepSummary(StepSummaryCode.CLAIMS_CHECKED, {**counts, "conflicts": len(output["conflicts"])})
        case "clarify":
            return StepSummary(StepSummaryCode.QUESTIONS_TO_PERSON, {"count": len(output["questions"])})
        case "correct":
            texts = [_text(one["text"]) for one in output["sentences"]]
            removed = sum(not text.strip() for text in texts)
            counts = {"corrected": len(texts) - removed, "removed": removed}
            return StepSummary(StepSummaryCode.SENTENCES_REVISED, counts)
        case _:
            return None


def _summarize_call(step: Step) -> StepSummary | None:
    return StepSummary(StepSummaryCode.ARGUMENTS_PLANNED) if step.payload.get("arguments_from") == "plan" else None


def _summarize_report(step: Step) -> StepSummary:
    names = ("supported", "sentences", "citations")
    return StepSummary(StepSummaryCode.REPORT, {name: _count(step.payload[name]) for name in names})


def _summarize_memory(step: Step) -> StepSummary | None:
    passages = step.payload.get("evidence")
    if not passages or step.payload["status"] != "ok":
        return None
    return StepSummary(StepSummaryCode.MEMORY, {"passages": len(passages), "fresh": _count(step.payload["fresh"])})


def _summarize_tool_result(step: Step) -> StepSummary | None:
    payload = step.payload
    if rejected := payload.get("rejected"):
        return StepSummary(StepSummaryCode.CHILD_RUNS_DENIED, {"reason": _text(rejected)})
    if step.label == "child":
        ending = {"reason": _text(payload["stop_reason"]), "passages": len(payload["spans"])}
        return StepSummary(StepSummaryCode.CHILD_RUN_ENDED, ending)
    # A step of a call that was made again says so, which no code stands for.
    summarize = _BY_TOOL.get(payload["tool"])
    if summarize is None or payload["status"] != "ok" or "anew" in payload:
        return None
    summary = summarize(payload["content"])
    return summary and StepSummary(summary.code, {**summary.parameters, **_describe_origin(payload)})


def _describe_origin(payload: Payload) -> dict[str, SummaryValue]:
    origin, position = parse_origin(payload.get("origin")), payload.get(BATCH)
    return {
        "origin": origin.name if origin.is_external else "",
        "number": _count(position["number"]) if position else 0,
        "size": _count(position["size"]) if position else 0,
    }


def _summarize_library_search(content: Payload) -> StepSummary:
    passages = content["passages"]
    sources = len({_text(one["source"]) for one in passages})
    return StepSummary(StepSummaryCode.LIBRARY_SEARCHED, {"passages": len(passages), "sources": sources})


def _summarize_web_search(content: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.WEB_SEARCHED, {"pages": len(content["results"])})


def _summarize_window_read(content: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.SOURCE_READ, {name: _count(content[name]) for name in ("start", "end", "total")})


def _summarize_recalled_sentences(content: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.REPORTS_RECALLED, {"sentences": len(content["sentences"])})


def _summarize_recalled_notes(content: Payload) -> StepSummary:
    return StepSummary(StepSummaryCode.NOTES_RECALLED, {"count": len(content["notes"])})


def _count(value: object) -> int:
    if type(value) is not int:
        raise TypeError("a parameter of a summary is not a number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("a parameter of a summary is not true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a parameter of a summary is not a text")
    return str(value)


def _texts(values: object) -> list[str]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError("a parameter of a summary is not a list of texts")
    return [_text(value) for value in cast("Sequence[object]", values)]


_BY_KIND: Mapping[StepKind, Callable[[Step], StepSummary | None]] = {
    StepKind.STARTED: lambda _: StepSummary(StepSummaryCode.STARTED),
    StepKind.PAUSED: lambda _: StepSummary(StepSummaryCode.PAUSED),
    StepKind.RESUMED: _summarize_resumed,
    StepKind.ENDED: _summarize_ended,
    StepKind.USER_MESSAGE: _summarize_message,
    StepKind.NOTE: _summarize_note,
    StepKind.VERIFICATION: _summarize_verification,
    StepKind.ROLE_CALL: _summarize_role_call,
    StepKind.TOOL_CALL: _summarize_call,
    StepKind.REPORT: _summarize_report,
    StepKind.MEMORY: _summarize_memory,
    StepKind.TOOL_RESULT: _summarize_tool_result,
}

_BY_LABEL: Mapping[str, Callable[[Payload], StepSummary]] = {
    "message read": _summarize_messages_read,
    "plan read": _summarize_plan_read,
    "continue": _summarize_continued,
    "not asked": _summarize_skipped,
    "window": _summarize_window,
    "follow_up": _summarize_follow_up,
    "route": _summarize_route,
    "reviewed plan": _summarize_reviewed_plan,
    "clarification": _summarize_clarification,
}
"""Notes of the included graphs by their label."""

_BY_TOOL: Mapping[str, Callable[[Payload], StepSummary | None]] = {
    "search_library": _summarize_library_search,
    "web_search": _summarize_web_search,
    "read_source": _summarize_window_read,
    "thread_search": _summarize_recalled_sentences,
    "thread_notes": _summarize_recalled_notes,
}
