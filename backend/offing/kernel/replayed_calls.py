"""The recorded calls of a replay: each call of the graph must be recorded, with the same request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

from offing.core import input_request
from offing.core.errors import OffingError
from offing.core.input_request import InputPrompt
from offing.core.model import EngineConfig, Message
from offing.core.report import Report
from offing.core.run import RunUsage
from offing.core.step import CallKey, Step, StepKind
from offing.kernel.call_key import NodeCall
from offing.kernel.interrupts import prompt_from_interrupt
from offing.kernel.recorded_calls import build_legacy_key, list_nested_calls
from offing.kernel.run_setup import ActiveRun
from offing.kernel.stored_run import StoredRun
from offing.kernel.usage import ZERO_USD
from offing.sdk import CHILD_RUN, THREAD_NOTES, Graph, Role

APPROVAL_KEY_PART = "?approve "
"""Part of the key of an approval request, which belongs to the tool call."""


class ReplayMismatchError(OffingError):
    """The graph did not do what is recorded."""

    code = "diverged"


class RecordExhaustedError(OffingError):
    """The record ends here because the run was interrupted, so there is nothing to compare."""

    code = "out_of_record"


class ReplayedCalls:
    """The recorded calls of a replay. Every call must be recorded, with the same request."""

    def __init__(self, stored_run: StoredRun, steps_by_key: Mapping[CallKey, Step]) -> None:
        self._stored_run, self._unread = stored_run, dict(steps_by_key)
        self._all = dict(steps_by_key)
        self._answered: set[int] = set()
        self._graph: Graph | None = None
        self._run: ActiveRun | None = None
        self.taken_count, self.latest_seq = 0, None
        self.submitted_report: Report | None = None
        self._counted: set[CallKey] = set()

    def attach(self, graph: Graph, run: ActiveRun) -> None:
        """Make everything that the run has read so far available to a new execution of the graph."""
        self._graph, self._run = graph, run
        run.components.cache.add_steps(self._stored_run.steps)
        for key in self._counted - self._unread.keys():
            self._charge_step(self._all[key])

    def rewind(self, superstep: int) -> None:
        """Make the calls after a superstep available again, because the graph repeats them."""
        again = (key for key in self._counted if key.superstep > superstep)
        self._unread |= {key: self._all[key] for key in again}

    @property
    def count(self) -> int:
        return len(self._unread)

    @property
    def usage(self) -> RunUsage:
        """The usage of the run so far, without time."""
        return self._run.components.budget.run_usage if self._run else RunUsage()

    @property
    def is_comparing(self) -> bool:
        return True

    def take_step(self, call: NodeCall, expected: frozenset[str]) -> Step | None:
        key = call.key if call.key in self._unread else build_legacy_key(call)
        step = self._unread.pop(key, None)
        if step is None:
            return None
        self.latest_seq: int | None = step.seq
        if step.kind not in expected:
            expected_kinds = ", ".join(sorted(expected))
            raise ReplayMismatchError(
                f"step {step.seq}: {step.kind} {step.title!r} is recorded, but the graph requests {expected_kinds}"
            )
        _compare_request(step, call)
        if key not in self._counted:
            self._counted.add(key)
            self.taken_count += 1
        self._charge_step(step)
        self._consume_approval(key)
        return step

    @property
    def is_exhausted(self) -> bool:
        return not self._unread

    def is_declared(self, call: NodeCall) -> bool:
        return False

    async def check_side_effect(self, call: NodeCall) -> None:
        """Do nothing, because a replay has no side effects."""

    async def check_input_request(self, call: NodeCall) -> None:
        """Do nothing, because a replay makes no input requests."""

    def take_skipped_seqs(self, call: NodeCall) -> Sequence[int]:
        return ()

    @property
    def unread_seqs(self) -> Iterable[int]:
        return [step.seq for step in self._unread.values()]

    def check_new(self, call: NodeCall) -> None:
        if not self._stored_run.is_done:
            raise RecordExhaustedError(str(call.key))
        raise ReplayMismatchError(
            f"the graph requests {_describe_call(call)} at {call.key}, but nothing is recorded there"
        )

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """Check that the current prompt is part of the recorded one, to which an engine may have added text."""
        recorded = self._stored_run.prompts.get(step.seq)
        if step.kind is StepKind.FAILURE or not recorded:
            return
        prompt_format = role.find_format(self._stored_run.engines.get(role.name, EngineConfig()).prompt_format)
        rendered: tuple[Message, ...] = prompt_format.render(inputs) if prompt_format else role.render(inputs)
        if recorded[0].role == "system" and rendered and rendered[0].role != "system":
            recorded = recorded[1:]  # the engine put instructions before the prompt
        pairs = zip(rendered, recorded, strict=False)
        if len(rendered) > len(recorded) or not all(now.text in then.text for now, then in pairs):
            raise ReplayMismatchError(f"step {step.seq}: the prompt of {role.name} differs from the recorded one")

    def compare_report(self, report: Report, step: Step) -> None:
        self.submitted_report = report
        _check_equal(step, "reason", step.payload["reason"], report.stop_reason)
        _check_equal(step, "title", step.payload["title"], report.title)
        _check_equal(step, "sentences", step.payload["sentences"], len(report.sentences()))
        latest = not any(s.kind is StepKind.REPORT and s.seq > step.seq for s in self._stored_run.steps)
        if latest and self._stored_run.report is not None and report != self._stored_run.report:
            raise ReplayMismatchError(
                f"step {step.seq}: the report differs from the stored one; has a source been erased since then?"
            )

    def get_responses(self, interrupts: Sequence[Interrupt]) -> dict[str, Any]:
        """Return the recorded response to each interrupt of the graph.

        Raises RecordExhaustedError and ReplayMismatchError.
        """
        steps = self._stored_run.steps
        answers = {s.payload["question"]: s for s in steps if s.kind is StepKind.INPUT_RESPONSE}
        responses: dict[str, Any] = {}
        for interrupt in interrupts:
            prompt = prompt_from_interrupt(interrupt)
            request = next((s for s in steps if s.seq not in self._answered and _is_request_for(s, prompt)), None)
            if request is None or request.seq not in answers:
                continue
            self._answered.add(request.seq)
            answer = input_request.response_from_json(answers[request.seq].payload["answer"])
            responses[interrupt.id] = input_request.parse_interrupt_value(answer)
        if not responses:
            self.check_new(NodeCall(CallKey(0, "interrupt", 0), ("an interrupt", [str(i.value) for i in interrupts])))
        return responses

    def check_end(self, state: Mapping[str, Any]) -> None:
        """Check that the ended graph has read the whole record. Raises ReplayMismatchError."""
        anew = {seq for step in self._stored_run.steps for seq in step.payload.get("anew", {}).get("instead_of", ())}
        unasked = (
            step for key, step in self._unread.items() if key not in self._counted and APPROVAL_KEY_PART not in key.path
        )
        unread = [step for step in unasked if step.seq not in anew]
        if unread:
            step = min(unread, key=lambda step: step.seq)
            self.latest_seq = step.seq
            raise ReplayMismatchError(
                f"the graph ended, but the record continues with step {step.seq}: {step.kind} {step.title!r}"
            )
        stored = self._stored_run.final_state
        if stored is None or not self._stored_run.is_done:
            return
        for name in sorted(set(state) & set(stored)):
            if _to_stored_json(state[name]) != _to_stored_json(stored[name]):
                raise ReplayMismatchError(
                    f"state {name!r} is {state[name]!r} at the end, but {stored[name]!r} is stored"
                )

    def _consume_approval(self, key: CallKey) -> None:
        """Read the approval of a tool call together with the call."""
        begins = f"{key.path}{APPROVAL_KEY_PART}"
        for other in [k for k in self._unread if k.path.startswith(begins) and k.superstep == key.superstep]:
            del self._unread[other]
            self._counted.add(other)
            self.taken_count += 1

    def drop_nested_calls(self, call: NodeCall) -> None:
        for other in list_nested_calls(self._unread, call.key):
            del self._unread[other]
            self._counted.add(other)
            self.taken_count += 1

    def _charge_step(self, step: Step) -> None:
        """Count the usage of a recorded step."""
        assert self._run is not None
        assert self._graph is not None
        usage = self._run.components.journal.usage_ledger
        key = step.call_key or CallKey(0, "", 0)
        usage.add_usage(key, step.tokens, ZERO_USD)
        if step.kind is StepKind.TOOL_RESULT and "child_usage" in step.payload:
            usage.begin_turn(usage.total.turns + int(step.payload["child_usage"]["turns"]))
        if (
            self._graph.langgraph_adapter is not None
            and "role" in step.payload
            and step.kind is not StepKind.REJECTED_COMPLETION
        ):
            usage.begin_turn(usage.total.turns + 1)


def _compare_request(step: Step, call: NodeCall) -> None:
    """Compare a recorded request with the current one. Raises ReplayMismatchError."""
    if len(call.request) < 2:
        return
    name, requested, payload = call.request[0], call.request[1], step.payload
    if isinstance(requested, BaseModel):
        _check_equal(step, "role", payload["role"], name)
    elif step.kind is StepKind.TOOL_RESULT and name == CHILD_RUN:
        _check_equal(step, "question", payload["args"]["question"], requested["question"])
    elif step.kind is StepKind.TOOL_RESULT and name != THREAD_NOTES:
        recorded = payload.get("requested", payload)  # a repaired call is recorded as it was executed
        _check_equal(step, "tool", recorded["tool"], name)
        _check_equal(step, "arguments", recorded["args"], _to_stored_json(requested))
    elif name == "narrow":
        _check_equal(step, "rules", payload.get("narrow"), _to_stored_json(requested))
    elif "function" in payload:
        _check_equal(step, "function", payload["function"], name)
    elif step.kind is not StepKind.TOOL_RESULT:
        _check_equal(step, "content", payload, _to_stored_json(requested))


def _check_equal(step: Step, field_name: str, recorded: Any, actual: Any) -> None:
    if recorded != actual:
        raise ReplayMismatchError(f"step {step.seq}: {field_name} was {recorded!r} and is now {actual!r}")


def _describe_call(call: NodeCall) -> str:
    """Describe a call briefly."""
    name = str(call.request[0]) if call.request else "a report"
    return name if len(name) <= 80 else f"{name[:80]}\u2026"


def _is_request_for(step: Step, prompt: InputPrompt) -> bool:
    """Return whether the step is the input request of an interrupt with this prompt."""
    return step.kind is StepKind.INPUT_REQUEST and input_request.prompt_from_json(step.payload) == prompt


def _to_stored_json(value: Any) -> Any:
    """Return a value as stored JSON, without the random ids of LangChain."""
    return orjson.loads(orjson.dumps(value, default=_json_default))


def _json_default(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return {"type": value.type, "content": value.content, "calls": getattr(value, "tool_calls", None)}
    return str(value)
