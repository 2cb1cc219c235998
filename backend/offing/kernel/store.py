"""What the kernel needs of the store that keeps a run: Postgres on a worker, memory in tests, a recording in a replay.

A store writes entries in one transaction and reads back what was written. It decides nothing about a run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from offing.core.model import Answer
from offing.core.policy import Policy
from offing.core.question import Asking, Question
from offing.core.report import Citation, Report
from offing.core.role_call import CallOrigin, RejectedCompletion, SegmentPosition
from offing.core.run import RunStatus, Spent, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.store_item import ItemPut, Vectors
from offing.core.tool import Effect, Span
from offing.core.trajectory import Tail
from offing.core.usage import UsageDelta
from offing.sdk.children import ChildRequest


@dataclass(frozen=True, slots=True)
class RoleCallRecord:
    """The role call behind a step, as trainers read it."""

    origin: CallOrigin
    call: Answer | RejectedCompletion
    position: SegmentPosition | None
    """`None` means that it belongs to no segment."""


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """The report behind a step."""

    report: Report
    last_calls: tuple[int, ...] = ()
    """Steps of the role calls with which the run came to it on its own. Empty: the run did not."""


@dataclass(frozen=True, slots=True)
class InputRequestRecord:
    """What the step asks of a person."""

    asking: Asking
    interrupt_id: str | None = None
    """Id of the graph's own interrupt. `None` means that a node asked through the run."""


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """The step consumes the response to an input request."""

    number: int
    """Of the request: the `seq` of its step."""


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """The step consumes the result of a child run."""

    run: UUID


@dataclass(frozen=True, slots=True)
class ToolPolicyRecord:
    """The step puts a narrower tool policy in force."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class ItemsRecord:
    """The step puts items into the store."""

    puts: tuple[ItemPut, ...]


Record = (
    RoleCallRecord | ReportRecord | InputRequestRecord | ResponseRecord | ChildRecord | ToolPolicyRecord | ItemsRecord
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A step to append with what is stored beside it, in the same transaction."""

    draft: StepDraft
    record: Record | None = None
    """`None` means that there is nothing beside it."""


Hook = Callable[[Any, Sequence[Step]], Awaitable[None]]
"""Work of the store's owner at the end of a transaction, given the store's connection and the new steps."""


class JournalStore(Protocol):
    """Where steps go."""

    async def write(self, entries: Sequence[Entry], usage: UsageDelta, hook: Hook | None = None) -> list[Step]:
        """Append entries and add the usage, all or nothing.

        Raises Fenced when the run is somebody else's, AlreadyRecorded when a key has a step, and Unavailable when the
        outcome is not known or nothing was written.
        """
        ...

    async def find(self, entries: Sequence[Entry], after: int) -> list[Step] | None:
        """Return the steps of entries that an earlier `write` may have appended after step `after`.

        Without entries, return an empty list if the run was released. `None` means that they were not appended.
        """
        ...

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
        """Write down that a side effect is about to happen. `False` means that an earlier claim had done so."""
        ...


class StepStore(Protocol):
    """Steps that are stored."""

    async def steps_by_seq(self, seqs: Sequence[int]) -> Sequence[Step]:
        """Return these steps in the order asked for, without those that do not exist."""
        ...

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        """Return the last steps of a kind, oldest first."""
        ...

    async def user_messages(self) -> Sequence[Step]:
        """Return what people have written to the run, oldest first."""
        ...


class ReportStore(Protocol):
    """Reports, and the texts that they quote."""

    async def latest_report(self) -> Report | None:
        """Return the run's latest report. `None` means that it has none."""
        ...

    async def texts(self, spans: Sequence[Span]) -> Sequence[str | None]:
        """Return the stored text of each span. `None` stands for a text that is no longer stored."""
        ...


class SegmentStore(Protocol):
    """Segments of role calls."""

    async def segment_tails(self) -> tuple[int, Mapping[str, Tail]]:
        """Return the number of the run's next segment, and the end of each role's latest segment."""
        ...


class SpendingStore(Protocol):
    """The tenant's daily spending limit."""

    async def reserve(self, usd: Decimal) -> date | None:
        """Reserve money and return the day of the reservation. `None` means that the limit leaves no room."""
        ...


@dataclass(frozen=True, slots=True)
class InterruptRequest:
    """The input request that an interrupt has become."""

    request: Question
    consumed: bool
    """A step of the run has consumed the response."""


class InputRequestStore(Protocol):
    """What people were asked."""

    async def interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        """Return the input requests of the graph's own interrupts by the interrupt's id, as far as there are any."""
        ...

    async def input_request(self, number: int, *, take_default: bool) -> Question | None:
        """Return an input request as it stands. Its default is stored as the response if its time is over.

        `take_default`: store the default now. `None` means that no person was asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """A report of an earlier run of the thread."""

    run: UUID
    question: str
    report: Report


@dataclass(frozen=True, slots=True)
class ThreadSentence:
    """A sentence of an earlier report with its citations."""

    run: UUID
    question: str
    text: str
    citations: tuple[Citation, ...]


class ThreadStore(Protocol):
    """The earlier runs of the thread."""

    async def thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        """Return their reports, newest first."""
        ...

    async def thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        """Return the key, text and run of the notes that they left: the latest of each key, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A child run as its parent sees it."""

    id: UUID
    status: RunStatus
    stop_reason: StopReason | None
    error: str
    """Empty: there was none."""
    spent: Spent
    has_ended: bool


@dataclass(frozen=True, slots=True)
class ChildRunsUnavailable:
    """Why no child runs are started."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What an ended child run left."""

    report: Report | None
    observations: tuple[Step, ...]
    """Its tool calls."""
    used: Mapping[str, int]
    """Calls of each tool, those of its own children included."""
    received: Mapping[str, int]
    """Bytes that each tool answered."""


@dataclass(frozen=True, slots=True)
class ParentUsage:
    """What the parent has used by now."""

    spent: Spent
    used: Mapping[str, int]
    received: Mapping[str, int]


class ChildRunStore(Protocol):
    """Child runs."""

    async def create_children(
        self, wanted: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        """Return the child run of each request. Those that an earlier claim created are not created again."""
        ...

    async def child_result(self, run: UUID) -> ChildResult:
        """Return what an ended child run left."""
        ...


class ItemSource(Protocol):
    """Items of LangGraph's store that a run shares with others."""

    async def read_items(
        self, ops: Sequence[Any], queries: Sequence[Vectors | None], unsaved: Sequence[ItemPut]
    ) -> Sequence[Any]:
        """Return the result of each operation that reads, with the unsaved puts carried out for it.

        `queries`: the vector of what a search asks for.
        """
        ...

    async def check_room(self, new: int) -> None:
        """Raises InvalidInput when there is no room for new items."""
        ...


class RunStore(
    JournalStore,
    StepStore,
    ReportStore,
    SegmentStore,
    SpendingStore,
    InputRequestStore,
    ThreadStore,
    ChildRunStore,
    Protocol,
):
    """Everything that the kernel reads and writes of one run."""


class LiveSink(Protocol):
    """Subscribers of one run. Its methods never raise."""

    async def steps(self, steps: Sequence[Step], /) -> None: ...

    async def action(self, text: str | None, /) -> None:
        """Show what the run does now. `None` means nothing."""
        ...
