"""Execute a run again from its record, without a model or a write: every call on record is answered with its record.

A replay proves that the record determines the run: the graph must ask for the same things, and end in the same state
and with the same report. It is the kernel over a recording. A graph's own functions run again, and so does a tool of
its own whose result is not on record.
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

from offing.core import question
from offing.core.errors import OffingError
from offing.core.model import Answer, EngineChoice, EngineFailure, Message
from offing.core.policy import Policy
from offing.core.question import Asking
from offing.core.report import Report
from offing.core.run import Spent, StopReason
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import Span
from offing.kernel.call_key import Call
from offing.kernel.call_path import CallPath, CallPathTracker
from offing.kernel.ending import closing_report, own_answer
from offing.kernel.execution import Execution, execute
from offing.kernel.interrupts import asking_of
from offing.kernel.memory_store import MemoryRunStore
from offing.kernel.opening import OpenRun, RunSetup, open_run
from offing.kernel.recorded_calls import old_key, parts_of
from offing.kernel.store import Entry, ReportRecord
from offing.kernel.usage import NOTHING
from offing.models.engine import RoleRequest
from offing.sdk import CHILD_RUN, NOTES, Graph, Role, RunView
from offing.tools.tool import Tool, ToolScope

UNRECORDED_STOPS = frozenset(
    {StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT, StopReason.ASKED_TO_WRITE}
)
"""Reasons to stop that came from clocks, money or people. At which look they showed is found by trying."""

MAX_LOOKS = 8
"""How many looks back from a difference are tried."""

APPROVAL = "?approve "
"""In the key of what a person was asked before a tool was called: it belongs to that call."""


class Diverged(OffingError):
    """The graph did something else than what is recorded."""

    code = "diverged"


class OutOfRecord(OffingError):
    """The run was cut off here, so there is nothing to compare with."""

    code = "out_of_record"


@dataclass(frozen=True, slots=True)
class Recording:
    """All of a run that its graph may see."""

    run: RunView
    steps: tuple[Step, ...]
    stop_reason: str = ""
    """Why the run ended, a StopReason."""
    done: bool = True
    """It came to its own end, so that everything that it asked for is on record."""
    policy: Policy | None = None
    tools: Sequence[Tool] = ()
    engines: Mapping[str, EngineChoice] = field(default_factory=dict[str, EngineChoice])
    prompts: Mapping[int, tuple[Message, ...]] = field(default_factory=dict[int, Any])
    """Recorded prompts by step. Absent: they are not compared."""
    report: Report | None = None
    """`None` means that it is not compared."""
    state: Mapping[str, Any] | None = None
    """As it was last saved. `None` means that it is not compared."""

    @property
    def keyed(self) -> dict[CallKey, Step]:
        return {step.key: step for step in self.steps if step.key is not None}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay."""

    same: bool
    calls: int
    """Calls that were answered from the record."""
    recorded: int
    """Calls that are on record."""
    detail: str
    seq: int | None = None
    """The step at which the difference showed. `None`: there is none, or it is behind the last step."""
    report: Report | None = None
    """As the graph delivered it now."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The graph's state at its end."""
    spent: Spent = field(default_factory=Spent)


async def replay(
    graph: Graph, recording: Recording, text_of: Callable[[Span], str], library: Any, checkpointer: Callable[[], Any]
) -> Replayed:
    """Replay a recording. `text_of`: the stored text of what reports quote. `checkpointer`: makes an empty one."""
    first = _Replay(graph, recording, text_of, library, checkpointer(), None)
    result = await first.result()
    if result.same or recording.stop_reason not in UNRECORDED_STOPS:
        return result
    for look in range(first.controls.looks - 1, max(-1, first.controls.looks - 1 - MAX_LOOKS), -1):
        again = await _Replay(graph, recording, text_of, library, checkpointer(), look).result()
        if again.same:
            return again
    return result


class _Replay:
    """One attempt. `stop_at`: the look at which the recorded reason to stop shows first; None: never."""

    def __init__(
        self,
        graph: Graph,
        recording: Recording,
        text_of: Callable[[Span], str],
        library: Any,
        checkpointer: Any,
        stop_at: int | None,
    ) -> None:
        self._graph, self._recording, self._library = graph, recording, library
        self._checkpointer = checkpointer
        self.controls = _Looks(recording, stop_at)
        self._calls = _RecordedCalls(recording, recording.keyed)
        self._store = _RecordedStore(recording, text_of)
        self._paths = _ShiftedPaths(min((key.superstep for key in recording.keyed), default=0))

    async def result(self) -> Replayed:
        calls, recorded = self._calls, len(self._recording.keyed)
        try:
            ended, report = await self._ended()
        except Diverged as error:
            return Replayed(False, calls.taken, recorded, str(error), calls.at)
        except OutOfRecord:
            detail = f"{calls.taken} calls, up to where the run was cut off ({self._recording.stop_reason})"
            return Replayed(True, calls.taken, recorded, detail)
        detail = f"{calls.taken} calls in the same order, the same report and the same state at the end"
        return Replayed(True, calls.taken, recorded, detail, None, report, ended.values, calls.spent)

    async def _ended(self) -> tuple[Execution, Report | None]:
        """The end of the graph; what it interrupts itself for is answered from the record."""
        given: Any = self._graph.start(self._recording.run)
        while True:
            run = self._open()
            ended = await self._executed(run, given)
            if not ended.raised:
                break
            given = Command(resume=self._calls.responses(ended.raised))
            self._calls.rewind(await self._superstep() + self._paths.shift)
        report = await self._last_report(run, ended)
        self._calls.check_end(ended.values)
        return ended, report

    async def _executed(self, run: OpenRun, given: Any) -> Execution:
        try:
            return await execute(
                self._graph, run, self._checkpointer, given, thread="replay", read_values=True, durability="sync"
            )
        except (Diverged, OutOfRecord):
            raise
        except Exception as error:
            if self._recording.stop_reason != StopReason.GRAPH_ERROR:
                raise Diverged(f"the graph raised {type(error).__name__}: {error}") from error
            raise OutOfRecord("The graph raised, as it did then.") from error

    async def _superstep(self) -> int:
        """The superstep of the checkpoint that the graph continues from."""
        found = await self._checkpointer.aget_tuple({"configurable": {"thread_id": "replay", "checkpoint_ns": ""}})
        return int(found.metadata["step"])

    async def _last_report(self, run: OpenRun, ended: Execution) -> Report | None:
        """The report; that of a graph that delivers none itself is in its values."""
        own = await own_answer(self._graph, run, ended)
        if own is None or not self._recording.stop_reason:
            return self._calls.delivered
        entry = await closing_report(self._graph, run, own, StopReason(self._recording.stop_reason))
        assert isinstance(entry.record, ReportRecord)
        stored = self._recording.report
        if stored is not None and replace(entry.record.report, written_by=stored.written_by) != stored:
            raise Diverged("the report at the end differs from the stored one; has a source been erased since?")
        return entry.record.report

    def _open(self) -> OpenRun:
        recording = self._recording
        setup = RunSetup(
            run=recording.run,
            graph=self._graph,
            recorded=self._calls,
            last_seq=0,
            fence=1,
            scope=ToolScope(UUID(int=0), recording.run.id, "", self._library),
            tools=recording.tools,
            policy=recording.policy,
            at_end=True,
            paths=self._paths,
        )
        sink: Any = _Nobody()
        run = open_run(setup, self._store, _NoEngines(recording.engines), self.controls, sink, time.monotonic)
        self._calls.attach(self._graph, run)
        return run


class _Nobody:
    async def steps(self, steps: Sequence[Step], /) -> None: ...

    async def action(self, text: str | None, /) -> None: ...


@dataclass(frozen=True, slots=True)
class _NoEngines:
    choices: Mapping[str, EngineChoice]

    def choice(self, role: str) -> EngineChoice:
        return self.choices.get(role, EngineChoice())

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        raise AssertionError("A replay asks no engine.")


class _Looks:
    """How often the graph asked whether to stop."""

    def __init__(self, recording: Recording, stop_at: int | None) -> None:
        self._recording, self._stop_at, self.looks = recording, stop_at, 0

    def forced_stop(self) -> StopReason | None:
        look, self.looks = self.looks, self.looks + 1
        if self._stop_at is not None and look >= self._stop_at:
            return StopReason(self._recording.stop_reason)
        return None

    def turn_begun(self) -> None: ...


class _ShiftedPaths(CallPathTracker):
    """Supersteps of a thread's earlier runs come before those of this one. `first`: the record's first superstep."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first, self._shift = first, None

    @property
    def shift(self) -> int:
        return self._shift or 0

    def current(self) -> CallPath:
        superstep, path = super().current()
        if self._shift is None:
            self._shift: int | None = self._first - superstep
        return superstep + self._shift, path


class _RecordedStore(MemoryRunStore):
    """The store of a recording. Its steps are in the step cache, where each is hidden until its call is made."""

    def __init__(self, recording: Recording, text_of: Callable[[Span], str]) -> None:
        super().__init__(text_of)
        self._steps = {step.seq: step for step in recording.steps}

    async def steps_by_seq(self, seqs: Sequence[int]) -> Sequence[Step]:
        return [self._steps[seq] for seq in seqs if seq in self._steps]

    async def user_messages(self) -> Sequence[Step]:
        return [step for step in self._steps.values() if step.kind is StepKind.HUMAN]

    async def write(self, entries: Sequence[Entry], usage: Any, hook: Any = None) -> list[Step]:
        titles = ", ".join(repr(entry.draft.title) for entry in entries)
        raise Diverged(f"the graph records {titles}, and nothing of the kind is recorded there")


class _RecordedCalls:
    """The calls of a recording. Whatever is asked must be there, and be the same."""

    def __init__(self, recording: Recording, keyed: Mapping[CallKey, Step]) -> None:
        self._recording, self._left = recording, dict(keyed)
        self._all = dict(keyed)
        self._answered: set[int] = set()
        self._graph: Graph | None = None
        self._run: OpenRun | None = None
        self.taken, self.at = 0, None
        self.delivered: Report | None = None
        self._counted: set[CallKey] = set()

    def attach(self, graph: Graph, run: OpenRun) -> None:
        """Let a new execution of the graph see what the run has seen so far."""
        self._graph, self._run = graph, run
        run.parts.cache.add(self._recording.steps)
        for key in self._counted - self._left.keys():
            self._charge(self._all[key])

    def rewind(self, superstep: int) -> None:
        """The graph continues behind this superstep: its nodes ask again for what they had asked for since."""
        again = (key for key in self._counted if key.superstep > superstep)
        self._left |= {key: self._all[key] for key in again}

    @property
    def count(self) -> int:
        return len(self._left)

    @property
    def spent(self) -> Spent:
        """What the run has used by now, but for time."""
        return self._run.parts.budget.spent if self._run else Spent()

    @property
    def compares(self) -> bool:
        return True

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        key = call.key if call.key in self._left else old_key(call)
        step = self._left.pop(key, None)
        if step is None:
            return None
        self.at: int | None = step.seq
        if step.kind not in expected:
            wanted = ", ".join(sorted(expected))
            raise Diverged(f"step {step.seq}: recorded {step.kind} {step.title!r}, and the graph asks for {wanted}")
        _compare(step, call)
        if key not in self._counted:
            self._counted.add(key)
            self.taken += 1
        self._charge(step)
        self._take_approval(key)
        return step

    @property
    def is_exhausted(self) -> bool:
        return not self._left

    def is_declared(self, call: Call) -> bool:
        return False

    async def check_effect(self, call: Call) -> None:
        """Nothing has an effect in a replay."""

    async def check_request(self, call: Call) -> None:
        """Nobody is asked in a replay."""

    def passed_over(self, call: Call) -> Sequence[int]:
        return ()

    @property
    def seqs(self) -> Iterable[int]:
        return [step.seq for step in self._left.values()]

    def check_new(self, call: Call) -> None:
        if not self._recording.done:
            raise OutOfRecord(str(call.key))
        raise Diverged(f"the graph asks for {_words(call)} at {call.key}, and nothing is recorded there")

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """What was rendered then must be in what is rendered now; an engine may have added its own words."""
        recorded = self._recording.prompts.get(step.seq)
        if step.kind is StepKind.FAILURE or not recorded:
            return
        form = role.form(self._recording.engines.get(role.name, EngineChoice()).form)
        rendered: tuple[Message, ...] = form.render(inputs) if form else role.render(inputs)
        pairs = zip(rendered, recorded, strict=False)
        if len(rendered) > len(recorded) or not all(now.text in then.text for now, then in pairs):
            raise Diverged(f"step {step.seq}: {role.name} is asked with another prompt than the recorded one")

    def compare_report(self, report: Report, step: Step) -> None:
        self.delivered = report
        _same(step, "reason", step.payload["reason"], report.reason)
        _same(step, "title", step.payload["title"], report.title)
        _same(step, "sentences", step.payload["sentences"], len(report.sentences()))
        latest = not any(s.kind is StepKind.REPORT and s.seq > step.seq for s in self._recording.steps)
        if latest and self._recording.report is not None and report != self._recording.report:
            raise Diverged(f"step {step.seq}: the report differs from the stored one; has a source been erased since?")

    def responses(self, raised: Sequence[Interrupt]) -> dict[str, Any]:
        """The recorded response to each interrupt that the graph raised. Raises OutOfRecord, and Diverged."""
        steps = self._recording.steps
        answers = {s.payload["question"]: s for s in steps if s.kind is StepKind.ANSWER}
        found: dict[str, Any] = {}
        for interrupt in raised:
            asked = asking_of(interrupt)
            request = next((s for s in steps if s.seq not in self._answered and _asks(s, asked)), None)
            if request is None or request.seq not in answers:
                continue
            self._answered.add(request.seq)
            answer = question.answer_of(answers[request.seq].payload["answer"])
            found[interrupt.id] = question.value_of(answer)
        if not found:
            self.check_new(Call(CallKey(0, "interrupt", 0), ("an interrupt", [str(i.value) for i in raised])))
        return found

    def check_end(self, state: Mapping[str, Any]) -> None:
        """The graph has ended. Nothing may be left of the record. Raises Diverged."""
        anew = {seq for step in self._recording.steps for seq in step.payload.get("anew", {}).get("instead_of", ())}
        unasked = (step for key, step in self._left.items() if key not in self._counted and APPROVAL not in key.path)
        left = [step for step in unasked if step.seq not in anew]
        if left:
            step = min(left, key=lambda step: step.seq)
            self.at = step.seq
            raise Diverged(f"the graph ended, and the record goes on with step {step.seq}: {step.kind} {step.title!r}")
        stored = self._recording.state
        if stored is None or not self._recording.done:
            return
        for name in sorted(set(state) & set(stored)):
            if _plain(state[name]) != _plain(stored[name]):
                raise Diverged(f"state {name!r} ended as {state[name]!r}, and {stored[name]!r} is stored")

    def _take_approval(self, key: CallKey) -> None:
        """What a person was asked and said before a tool was called belongs to that call."""
        begins = f"{key.path}{APPROVAL}"
        for other in [k for k in self._left if k.path.startswith(begins) and k.superstep == key.superstep]:
            del self._left[other]
            self._counted.add(other)
            self.taken += 1

    def drop_parts(self, call: Call) -> None:
        for other in parts_of(self._left, call.key):
            del self._left[other]
            self._counted.add(other)
            self.taken += 1

    def _charge(self, step: Step) -> None:
        """Count what a recorded step used."""
        assert self._run is not None
        assert self._graph is not None
        usage = self._run.parts.journal.usage
        key = step.key or CallKey(0, "", 0)
        usage.add(key, step.tokens, NOTHING)
        if step.kind is StepKind.TOOL and "spent" in step.payload:
            usage.begin_turn(usage.spent.turns + int(step.payload["spent"]["turns"]))
        if self._graph.plain is not None and "role" in step.payload and step.kind is not StepKind.ATTEMPT:
            usage.begin_turn(usage.spent.turns + 1)


def _compare(step: Step, call: Call) -> None:
    """Compare what was asked with what is asked now. Raises Diverged."""
    if len(call.request) < 2:
        return
    name, asked, payload = call.request[0], call.request[1], step.payload
    if isinstance(asked, BaseModel):
        _same(step, "role", payload["role"], name)
    elif step.kind is StepKind.TOOL and name == CHILD_RUN:
        _same(step, "question", payload["args"]["question"], asked["question"])
    elif step.kind is StepKind.TOOL and name != NOTES:
        _same(step, "tool", payload["tool"], name)
        _same(step, "arguments", payload["args"], _plain(asked))
    elif name == "narrow":
        _same(step, "rules", payload.get("narrow"), _plain(asked))
    elif "function" in payload:
        _same(step, "function", payload["function"], name)
    elif step.kind is not StepKind.TOOL:
        _same(step, "content", payload, _plain(asked))


def _same(step: Step, what: str, recorded: Any, now: Any) -> None:
    if recorded != now:
        raise Diverged(f"step {step.seq}: {what} {recorded!r} is recorded, and now it is {now!r}")


def _words(call: Call) -> str:
    """What a call asks, in a few words."""
    name = str(call.request[0]) if call.request else "a report"
    return name if len(name) <= 80 else f"{name[:80]}\u2026"


def _asks(step: Step, asked: Asking) -> bool:
    """The step is an input request that a graph's own interrupt with this value has become."""
    return step.kind is StepKind.QUESTION and question.asking_of(step.payload) == asked


def _plain(value: Any) -> Any:
    """Return a value as it is after it was stored as JSON. Ids that LangChain draws at random are left out."""
    return orjson.loads(orjson.dumps(value, default=_written))


def _written(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return {"type": value.type, "content": value.content, "calls": getattr(value, "tool_calls", None)}
    return str(value)
