"""Step drafts of role calls, tool calls and reports: their payloads and their timeline texts."""

from dataclasses import asdict
from typing import Any

from offing.core.model import EngineConfig, EngineFailure, EngineResponse
from offing.core.report import Report
from offing.core.role_call import RejectedCompletion, attempt_to_json, usage_to_json
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.tool import ToolStatus
from offing.core.tool_batch import BatchPosition
from offing.kernel.tool_executor import ToolCallOutcome
from offing.sdk import Role, ToolCall
from offing.telemetry.redaction import redact_value


def draft_failure(
    role: Role[Any, Any], engine_config: EngineConfig, failure: EngineFailure, key: CallKey, turn: int, ms: int
) -> StepDraft:
    """Return the step of a role call that failed."""
    payload = {
        "role": role.name,
        "engine": engine_config.engine,
        "model": engine_config.model,
        "failure": failure.kind,
        "message": failure.message,
        "stop": failure.stop_reason,
        "attempts": [attempt_to_json(a) for a in failure.attempts],
        "usage": usage_to_json(failure.usage),
        **_describe_slot_wait(failure),
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
        call_key=key,
    )


def draft_role_call(
    role: Role[Any, Any], engine_config: EngineConfig, response: EngineResponse, key: CallKey, turn: int, ms: int
) -> StepDraft:
    """Return the step of a role call with its output."""
    output: Any = response.output
    headline = role.headline(output)
    omitted_passages = sum(message.omitted_passages for message in response.messages)
    payload = {
        "role": role.name,
        "engine": engine_config.engine,
        "model": response.model,
        **_describe_fallback(response),
        "output": output.model_dump(mode="json"),
        **({} if response.first_text_ms is None else {"first_text_ms": response.first_text_ms}),
        **_describe_slot_wait(response),
        **({"prompt_library": engine_config.prompt_library} if engine_config.prompt_library else {}),
        **({"used": [response.usage.prompt_tokens, response.usage.completion_tokens]} if role.native_chat else {}),
        **({"omitted_passages": omitted_passages} if omitted_passages else {}),
    }
    return StepDraft(
        role.step_kind,
        headline.title,
        payload,
        label=role.label,
        detail=_join_detail(
            headline.detail,
            _render_omitted(omitted_passages),
            _render_fallback(response),
            _render_slot_wait(response.slot_wait_ms),
        ),
        ms=ms,
        tokens=response.usage.tokens,
        turn=turn,
        call_key=key,
    )


def _join_detail(*parts: str) -> str:
    return " \u00b7 ".join(filter(None, parts))


def _render_omitted(omitted_passages: int) -> str:
    """Say how many retrieved passages the prompt of a role call did not show."""
    return f"{omitted_passages} passage{'s' * (omitted_passages != 1)} not shown" if omitted_passages else ""


def _describe_fallback(response: EngineResponse) -> dict[str, Any]:
    """Return which fallback answered, and why each engine before it did not. Empty if there was none."""
    if not response.fallback:
        return {}
    reasons = [{"model": one.model, "failure": one.failure, "message": one.message} for one in response.passed_over]
    return {"fallback": response.fallback, "passed_over": reasons}


def _describe_slot_wait(outcome: EngineResponse | EngineFailure) -> dict[str, int]:
    """Return how long the call waited for the limit of concurrent calls of its provider. Empty if it did not."""
    return {"slot_wait_ms": outcome.slot_wait_ms} if outcome.slot_wait_ms else {}


def _render_slot_wait(slot_wait_ms: int) -> str:
    """Say for how long a role call waited for a call slot, from one second."""
    return f"waited {slot_wait_ms // 1000} s for other calls of the provider" if slot_wait_ms >= 1000 else ""


def _render_fallback(response: EngineResponse) -> str:
    """Say which fallback answered a role call, and the failures before it."""
    reasons = ", ".join(f"{one.model}: {one.failure.replace('_', ' ')}" for one in response.passed_over)
    return f"answered by the fallback {response.fallback} ({reasons})" if response.fallback else ""


def draft_rejected(
    role: Role[Any, Any], engine_config: EngineConfig, rejection: RejectedCompletion, turn: int
) -> StepDraft:
    """Return the step of a rejected completion.

    The completion itself is stored with the role call. Its tokens and cost count with the step of the
    call.
    """
    fields = {
        "role": role.name,
        "engine": engine_config.engine,
        "model": engine_config.model,
        "attempt": rejection.attempt_number,
    }
    problem, ms = rejection.attempt.message, rejection.attempt.ms
    title = f"{role.name}: {problem}"
    payload = fields | {"problem": problem}
    return StepDraft(StepKind.REJECTED_COMPLETION, title, payload, label="unusable", ok=False, ms=ms, turn=turn)


def draft_tool_result(
    call: ToolCall, outcome: ToolCallOutcome, key: CallKey, turn: int, ms: int, position: BatchPosition | None = None
) -> StepDraft:
    """Return the step of a tool call. Arguments that look like credentials are redacted.

    A repaired call is recorded as it was executed, with the requested one beside it. `position` is that
    of a call in a batch. `None` means that the call was made alone.
    """
    executed = outcome.repaired.call if outcome.repaired else call
    payload = {
        "tool": executed.tool,
        "args": redact_value(executed.args),
        "status": outcome.status,
        "rule": outcome.rule,
        "content": outcome.content,
        "message": outcome.message,
        "spans": [{"text_id": str(s.text_id), "start": s.start, "end": s.end} for s in outcome.spans],
        **outcome.provenance.to_json(),
        **({"substitute": redact_value(asdict(outcome.instead))} if outcome.instead else {}),
        **({"repairs": outcome.repaired.names, "requested": redact_value(asdict(call))} if outcome.repaired else {}),
        **(position.to_json() if position else {}),
    }
    ok = outcome.status is ToolStatus.OK
    return StepDraft(
        StepKind.TOOL_RESULT,
        outcome.title,
        payload,
        label=outcome.step_label if ok else "failed",
        detail=_render_detail(outcome, position),
        ok=ok,
        ms=ms,
        turn=turn,
        call_key=key,
    )


def _render_detail(outcome: ToolCallOutcome, position: BatchPosition | None) -> str:
    """Return the detail text of a tool call. For content from outside, it names the origin."""
    origin = outcome.provenance.origin
    external = f"from {origin.name}" if origin.is_external else ""
    batch = f"call {position.number} of {position.size} at once" if position else ""
    return " \u00b7 ".join(filter(None, (outcome.detail, external, batch)))


def draft_report(report: Report, key: CallKey | None) -> StepDraft:
    """Return the step of a submitted report. `key` is `None` if no node submitted it."""
    sentences = report.sentences()
    supported = sum(s.is_supported for s in sentences)
    payload = {
        "title": report.title,
        "status": report.status,
        "reason": report.stop_reason,
        "sentences": len(sentences),
        "supported": supported,
        "citations": len(report.cited()),
        **({"revision": asdict(report.revision)} if report.revision else {}),
        **({"follow_up": report.follow_up.kind} if report.follow_up else {}),
        **({"check": asdict(report.check)} if report.check else {}),
    }
    detail = f"{supported} of {len(sentences)} sentences have a source · {len(report.cited())} citations"
    return StepDraft(StepKind.REPORT, report.title, payload, detail=detail, call_key=key)
