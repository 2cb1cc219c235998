"""Role calls, tool calls and reports as steps: the payload of each, and how a timeline shows it."""

from dataclasses import asdict
from typing import Any

from offing.core.model import Answer, EngineChoice, EngineFailure
from offing.core.report import Report
from offing.core.role_call import RejectedCompletion, attempt_as_json
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.tool import ToolStatus
from offing.kernel.tool_executor import ToolCallOutcome
from offing.sdk import Role, ToolCall
from offing.telemetry.redaction import redact_value


def failed(
    role: Role[Any, Any], choice: EngineChoice, failure: EngineFailure, key: CallKey, turn: int, ms: int
) -> StepDraft:
    """A role call that no answer came of."""
    payload = {
        "role": role.name,
        "engine": choice.engine,
        "model": choice.model,
        "failure": failure.kind,
        "message": failure.message,
        "stop": failure.stop,
        "attempts": [attempt_as_json(a) for a in failure.attempts],
        "usage": asdict(failure.usage) | {"usd": str(failure.usage.usd)},
    }
    title = f"{role.name}: {failure.message}"
    return StepDraft(
        StepKind.FAILURE,
        title,
        payload,
        label="failed",
        ok=False,
        ms=ms,
        tokens=failure.usage.tokens,
        turn=turn,
        key=key,
    )


def accepted(role: Role[Any, Any], choice: EngineChoice, answer: Answer, key: CallKey, turn: int, ms: int) -> StepDraft:
    """A role call with its answer."""
    output: Any = answer.output
    headline = role.headline(output)
    payload = {
        "role": role.name,
        "engine": choice.engine,
        "model": answer.model,
        "output": output.model_dump(mode="json"),
        **({"library": choice.library} if choice.library else {}),
        **({"used": [answer.usage.prompt_tokens, answer.usage.completion_tokens]} if role.native else {}),
    }
    return StepDraft(
        role.kind,
        headline.title,
        payload,
        label=role.label,
        detail=headline.detail,
        ms=ms,
        tokens=answer.usage.tokens,
        turn=turn,
        key=key,
    )


def unused(role: Role[Any, Any], choice: EngineChoice, rejection: RejectedCompletion, turn: int) -> StepDraft:
    """What was written is in the turn; tokens and money count with the call's own step."""
    said = {"role": role.name, "engine": choice.engine, "model": choice.model, "attempt": rejection.nth}
    problem, ms = rejection.attempt.message, rejection.attempt.ms
    title = f"{role.name}: {problem}"
    payload = said | {"problem": problem}
    return StepDraft(StepKind.ATTEMPT, title, payload, label="unusable", ok=False, ms=ms, turn=turn)


def used(call: ToolCall, outcome: ToolCallOutcome, key: CallKey, turn: int, ms: int) -> StepDraft:
    """A tool call; what looks like a credential in its arguments is left out."""
    payload = {
        "tool": call.tool,
        "args": redact_value(call.args),
        "status": outcome.status,
        "rule": outcome.rule,
        "content": outcome.content,
        "message": outcome.message,
        "spans": [{"artefact": str(s.artefact), "start": s.start, "end": s.end} for s in outcome.spans],
        **outcome.label.as_json(),
        **({"instead": redact_value(asdict(outcome.instead))} if outcome.instead else {}),
    }
    ok = outcome.status is ToolStatus.OK
    return StepDraft(
        StepKind.TOOL,
        outcome.title,
        payload,
        label=outcome.verb if ok else "failed",
        detail=_with_place(outcome),
        ok=ok,
        ms=ms,
        turn=turn,
        key=key,
    )


def _with_place(outcome: ToolCallOutcome) -> str:
    """What a timeline shows under the title; of an observation from outside, also where it came from."""
    origin = outcome.label.origin
    return " \u00b7 ".join(filter(None, (outcome.detail, f"from {origin.name}" if origin.outside else "")))


def reported(report: Report, key: CallKey | None) -> StepDraft:
    """A report that was handed over. `key` None: by no node."""
    sentences = report.sentences()
    supported = sum(s.supported for s in sentences)
    payload = {
        "title": report.title,
        "status": report.status,
        "reason": report.reason,
        "sentences": len(sentences),
        "supported": supported,
        "citations": len(report.citations),
    }
    detail = f"{supported} of {len(sentences)} sentences stand on a source · {len(report.citations)} citations"
    return StepDraft(StepKind.REPORT, report.title, payload, detail=detail, key=key)
