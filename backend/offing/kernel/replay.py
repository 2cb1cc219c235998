"""Execute a run again from its recorded steps, without calling a model and without writing.

A replay proves that the record determines the run: the graph must make the same calls, and end with
the same state and the same report. Every recorded call returns its recorded result. The graph's own
functions are executed again, and so are its own tools without a recorded result.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import orjson
from langchain_core.messages import BaseMessage
from langgraph.types import Command, Interrupt
from pydantic import BaseModel

from offing.core import input_request
from offing.core.answer_draft import DraftPart
from offing.core.checkpoint import StoredCheckpoint
from offing.core.errors import OffingError
from offing.core.input_request import InputPrompt
from offing.core.model import EngineConfig, EngineFailure, EngineResponse, Message
from offing.core.report import Report
from offing.core.run import RunUsage, StopReason
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import SourceSpan
from offing.core.tool_policy import ToolPolicy
from offing.kernel.call_key import NodeCall
from offing.kernel.call_path import CallPath, CallPathTracker
from offing.kernel.execution import GraphProgress, execute_graph
from offing.kernel.final_report import build_adapter_report, build_final_report
from offing.kernel.interrupts import prompt_from_interrupt
from offing.kernel.langgraph_invocation import GraphInvocation
from offing.kernel.memory_run_store import MemoryRunStore
from offing.kernel.recorded_calls import build_legacy_key, list_nested_calls
from offing.kernel.run_setup import ActiveRun, RunSetup, build_active_run
from offing.kernel.run_store import JournalEntry, ReportAttachment
from offing.kernel.usage import ZERO_USD
from offing.models.engine import RoleRequest
from offing.sdk import CHILD_RUN, THREAD_NOTES, Graph, Role, RunInfo
from offing.tools.tool import Tool, ToolScope

UNRECORDED_STOP_REASONS = frozenset(
    {StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT, StopReason.FINISH_REQUESTED}
)
"""Stop reasons that came from clocks, money or people. When they took effect is found by trying."""

MAX_STOP_CHECKS = 8
"""Maximum number of stop checks before a mismatch that are tried."""

THREAD_ID = "replay"
"""Id of the thread in which a replay executes the graph."""

APPROVAL_KEY_PART = "?approve "
"""Part of the key of an approval request, which belongs to the tool call."""


class ReplayMismatchError(OffingError):
    """The graph did not do what is recorded."""

    code = "diverged"


class RecordExhaustedError(OffingError):
    """The record ends here because the run was interrupted, so there is nothing to compare."""

    code = "out_of_record"


@dataclass(frozen=True, slots=True)
class ReplayOpening:
    """What a run of LangGraph's clients began with."""

    graph_input: Any
    """LangGraph's input: values, a command, or `None` to continue from the state of the thread."""
    invocation: GraphInvocation
    start: StoredCheckpoint | None
    """The state of its thread. `None` means that the thread had none."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Everything of a run that its graph may see."""

    run: RunInfo
    steps: tuple[Step, ...]
    stop_reason: str = ""
    """Why the run ended, a StopReason."""
    is_done: bool = True
    """Whether the run ended on its own. Then all of its calls are recorded."""
    tool_policy: ToolPolicy | None = None
    tools: Sequence[Tool] = ()
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    prompts: Mapping[int, tuple[Message, ...]] = field(default_factory=dict[int, Any])
    """Recorded prompts by step. A missing prompt is not compared."""
    report: Report | None = None
    """`None` means that the report is not compared."""
    final_state: Mapping[str, Any] | None = None
    """The last saved state. `None` means that the state is not compared."""
    opening: ReplayOpening | None = None
    """What the run began with. `None` means its question. A run with an opening ends at its graph's interrupts."""

    @property
    def steps_by_key(self) -> dict[CallKey, Step]:
        return {step.call_key: step for step in self.steps if step.call_key is not None}


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay."""

    is_same: bool
    replayed_calls: int
    """Number of calls that were answered from the record."""
    recorded_calls: int
    """Number of recorded calls."""
    detail: str
    mismatch_seq: int | None = None
    """The step with the mismatch. `None` means no mismatch, or one after the last step."""
    report: Report | None = None
    """The report that the graph submitted in the replay."""
    final_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The final state of the graph."""
    usage: RunUsage = field(default_factory=RunUsage)


async def replay_stored_run(
    graph: Graph,
    stored_run: StoredRun,
    text_lookup: Callable[[SourceSpan], str],
    library: Any,
    create_checkpointer: Callable[[], Any],
) -> ReplayResult:
    """Replay a stored run.

    `text_lookup` returns the stored text that reports quote. `create_checkpointer` returns an empty
    checkpointer.
    """
    first = _ReplayAttempt(graph, stored_run, text_lookup, library, create_checkpointer(), None)
    result = await first.run_attempt()
    if result.is_same or stored_run.stop_reason not in UNRECORDED_STOP_REASONS:
        return result
    for look in range(first.controls.check_count - 1, max(-1, first.controls.check_count - 1 - MAX_STOP_CHECKS), -1):
        again = await _ReplayAttempt(graph, stored_run, text_lookup, library, create_checkpointer(), look).run_attempt()
        if again.is_same:
            return again
    return result


class _ReplayAttempt:
    """One attempt of a replay.

    `stop_at` is the stop check at which the recorded stop reason first takes effect. `None` means
    never.
    """

    def __init__(
        self,
        graph: Graph,
        stored_run: StoredRun,
        text_lookup: Callable[[SourceSpan], str],
        library: Any,
        checkpointer: Any,
        stop_at: int | None,
    ) -> None:
        self._graph, self._stored_run, self._library = graph, stored_run, library
        self._checkpointer = checkpointer
        self.controls = _StopChecks(stored_run, stop_at)
        self._calls = _ReplayCalls(stored_run, stored_run.steps_by_key)
        self._store = _ReplayStore(stored_run, text_lookup)
        self._paths = _ShiftedPathTracker(min((key.superstep for key in stored_run.steps_by_key), default=0))

    async def run_attempt(self) -> ReplayResult:
        calls, recorded = self._calls, len(self._stored_run.steps_by_key)
        try:
            ended, report = await self._run_to_end()
        except ReplayMismatchError as error:
            return ReplayResult(False, calls.taken_count, recorded, str(error), calls.latest_seq)
        except RecordExhaustedError:
            detail = (
                f"{calls.taken_count} calls, up to the point where the run was interrupted "
                f"({self._stored_run.stop_reason})"
            )
            return ReplayResult(True, calls.taken_count, recorded, detail)
        detail = f"{calls.taken_count} calls in the same order, with the same report and the same final state"
        return ReplayResult(True, calls.taken_count, recorded, detail, None, report, ended.state, calls.usage)

    async def _run_to_end(self) -> tuple[GraphProgress, Report | None]:
        """Run the graph to its end. Its interrupts are answered from the record."""
        opening = self._stored_run.opening
        graph_input: Any = opening.graph_input if opening else self._graph.initial_state(self._stored_run.run)
        while True:
            run = self._build_run()
            ended = await self._execute(run, graph_input)
            if not ended.interrupts or opening is not None:
                break
            graph_input = Command(resume=self._calls.get_responses(ended.interrupts))
            self._calls.rewind(await self._read_superstep() + self._paths.shift)
        report = await self._build_last_report(run, ended)
        self._calls.check_end(ended.state)
        return ended, report

    async def _execute(self, run: ActiveRun, graph_input: Any) -> GraphProgress:
        try:
            return await execute_graph(
                self._graph,
                run,
                self._checkpointer,
                graph_input,
                thread_id=THREAD_ID,
                read_state=True,
                durability="sync",
                invocation=self._stored_run.opening.invocation if self._stored_run.opening else None,
            )
        except (ReplayMismatchError, RecordExhaustedError):
            raise
        except Exception as error:
            if self._stored_run.stop_reason != StopReason.GRAPH_ERROR:
                raise ReplayMismatchError(f"the graph raised {type(error).__name__}: {error}") from error
            raise RecordExhaustedError("The graph raised an error, as in the recorded run.") from error

    async def _read_superstep(self) -> int:
        """Return the superstep of the checkpoint from which the graph continues."""
        checkpoint = await self._checkpointer.aget_tuple(
            {"configurable": {"thread_id": THREAD_ID, "checkpoint_ns": ""}}
        )
        return int(checkpoint.metadata["step"])

    async def _build_last_report(self, run: ActiveRun, progress: GraphProgress) -> Report | None:
        """Return the report of the run. The report of an adapted graph is in its final state."""
        own = await build_adapter_report(self._graph, run, progress)
        if own is None or not self._stored_run.stop_reason:
            return self._calls.submitted_report
        entry = await build_final_report(self._graph, run, own, StopReason(self._stored_run.stop_reason))
        assert isinstance(entry.attachment, ReportAttachment)
        stored = self._stored_run.report
        if stored is not None and replace(entry.attachment.report, written_by=stored.written_by) != stored:
            raise ReplayMismatchError(
                "the final report differs from the stored one; has a source been erased since then?"
            )
        return entry.attachment.report

    def _build_run(self) -> ActiveRun:
        recording = self._stored_run
        setup = RunSetup(
            run=recording.run,
            graph=self._graph,
            recorded_calls=self._calls,
            last_seq=0,
            fence=1,
            scope=ToolScope(UUID(int=0), recording.run.id, "", self._library),
            tools=recording.tools,
            tool_policy=recording.tool_policy,
            writes_at_exit=True,
            paths=self._paths,
        )
        sink: Any = _NullSink()
        run = build_active_run(
            setup, self._store, _DisabledEngines(recording.engines), self.controls, sink, time.monotonic
        )
        self._calls.attach(self._graph, run)
        return run


class _NullSink:
    async def publish_steps(self, steps: Sequence[Step], /) -> None: ...

    async def publish_action(self, text: str | None, /) -> None: ...

    shows_drafts = False

    async def publish_draft(self, part: DraftPart, /) -> None: ...

    async def end_draft(self, call_id: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class _DisabledEngines:
    configs: Mapping[str, EngineConfig]

    def get_config(self, role: str) -> EngineConfig:
        return self.configs.get(role, EngineConfig())

    def has_config(self, role: str) -> bool:
        return role in self.configs

    async def answer_role(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        raise AssertionError("A replay calls no engine.")


class _StopChecks:
    """Counts how often the graph checked whether to stop."""

    def __init__(self, stored_run: StoredRun, stop_at: int | None) -> None:
        self._stored_run, self._stop_at, self.check_count = stored_run, stop_at, 0

    def forced_stop_reason(self) -> StopReason | None:
        look, self.check_count = self.check_count, self.check_count + 1
        if self._stop_at is not None and look >= self._stop_at:
            return StopReason(self._stored_run.stop_reason)
        return None

    def on_turn_begin(self) -> None: ...


class _ShiftedPathTracker(CallPathTracker):
    """Shifts supersteps, because the supersteps of earlier runs of the thread come first.

    `first_superstep` is the first superstep of the record.
    """

    def __init__(self, first_superstep: int) -> None:
        super().__init__()
        self._first, self._shift = first_superstep, None

    @property
    def shift(self) -> int:
        return self._shift or 0

    def current_path(self) -> CallPath:
        superstep, path = super().current_path()
        if self._shift is None:
            self._shift: int | None = self._first - superstep
        return superstep + self._shift, path


class _ReplayStore(MemoryRunStore):
    """The store of a replay. Its steps are in the step cache, hidden until their calls are made."""

    def __init__(self, stored_run: StoredRun, text_lookup: Callable[[SourceSpan], str]) -> None:
        super().__init__(text_lookup)
        self._steps = {step.seq: step for step in stored_run.steps}

    async def get_steps(self, seqs: Sequence[int]) -> Sequence[Step]:
        return [self._steps[seq] for seq in seqs if seq in self._steps]

    async def list_user_messages(self) -> Sequence[Step]:
        return [step for step in self._steps.values() if step.kind is StepKind.USER_MESSAGE]

    async def append_entries(self, entries: Sequence[JournalEntry], usage: Any, hook: Any = None) -> list[Step]:
        titles = ", ".join(repr(entry.draft.title) for entry in entries)
        raise ReplayMismatchError(f"the graph records {titles}, but no such step is recorded there")


class _ReplayCalls:
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
