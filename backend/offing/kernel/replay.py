"""Execute a run again from its recorded steps, without calling a model and without writing.

A replay proves that the record determines the run: the graph must make the same calls, and end with
the same state and the same report. Every recorded call returns its recorded result. The graph's own
functions are executed again, and so are its own tools without a recorded result.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from langgraph.types import Command

from offing.core.answer_draft import DraftPart
from offing.core.model import EngineConfig, EngineFailure, EngineResponse
from offing.core.report import Report
from offing.core.run import RunUsage, StopReason
from offing.core.step import Step, StepKind
from offing.core.tool import SourceSpan
from offing.kernel.call_path import CallPath, CallPathTracker
from offing.kernel.execution import GraphProgress, execute_graph
from offing.kernel.final_report import build_adapter_report, build_final_report
from offing.kernel.memory_run_store import MemoryRunStore
from offing.kernel.replayed_calls import RecordExhaustedError, ReplayedCalls, ReplayMismatchError
from offing.kernel.run_setup import ActiveRun, RunSetup, build_active_run
from offing.kernel.run_store import JournalEntry, ReportAttachment
from offing.kernel.stored_run import StoredRun
from offing.models.engine import RoleRequest
from offing.sdk import Graph
from offing.tools.tool import ToolScope

UNRECORDED_STOP_REASONS = frozenset(
    {StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT, StopReason.FINISH_REQUESTED}
)
"""Stop reasons that came from clocks, money or people. When they took effect is found by trying."""

MAX_STOP_CHECKS = 8
"""Maximum number of stop checks before a mismatch that are tried."""

THREAD_ID = "replay"
"""Id of the thread in which a replay executes the graph."""


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
        self._calls = ReplayedCalls(stored_run, stored_run.steps_by_key)
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
