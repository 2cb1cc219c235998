"""The interface between the kernel and the store of a run.

Workers use Postgres, tests use memory, and replays use a stored run. A store writes entries in one
transaction and reads back what was written. It makes no decisions about a run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from offing.core.answer_draft import DraftPart
from offing.core.follow_up import FollowUp
from offing.core.input_request import InputPrompt, InputRequest
from offing.core.model import EngineResponse
from offing.core.report import Citation, Report
from offing.core.role_call import CallOrigin, RejectedCompletion, SegmentPosition
from offing.core.run import RunStatus, RunUsage, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.store_item import ItemPut, Vectors
from offing.core.tool import SideEffect, SourceSpan
from offing.core.tool_policy import ToolPolicy
from offing.core.trajectory import SegmentTail
from offing.core.usage import UsageDelta
from offing.sdk.child_runs import ChildRequest, ChildRunsUnavailable


@dataclass(frozen=True, slots=True)
class RoleCallAttachment:
    """The role call of a step, as training data."""

    origin: CallOrigin
    completion: EngineResponse | RejectedCompletion
    position: SegmentPosition | None
    """`None` means that the call belongs to no segment."""


@dataclass(frozen=True, slots=True)
class ReportAttachment:
    """The report of a step."""

    report: Report
    last_call_seqs: tuple[int, ...] = ()
    """Steps of the role calls that led to the report. Empty means that the run did not end on its own."""


@dataclass(frozen=True, slots=True)
class InputRequestAttachment:
    """The input request of a step."""

    prompt: InputPrompt
    interrupt_id: str | None = None
    """Id of the graph's own interrupt. `None` means that a node asked through the run context."""


@dataclass(frozen=True, slots=True)
class InputResponseAttachment:
    """The consumed input response of a step."""

    request_number: int
    """Number of the input request: the `seq` of its step."""


@dataclass(frozen=True, slots=True)
class ChildRunAttachment:
    """The consumed child run of a step."""

    run_id: UUID


@dataclass(frozen=True, slots=True)
class ToolPolicyAttachment:
    """The restricted tool policy of a step."""

    tool_policy: ToolPolicy


@dataclass(frozen=True, slots=True)
class ItemsAttachment:
    """The items that a step puts into the store."""

    puts: tuple[ItemPut, ...]


StepAttachment = (
    RoleCallAttachment
    | ReportAttachment
    | InputRequestAttachment
    | InputResponseAttachment
    | ChildRunAttachment
    | ToolPolicyAttachment
    | ItemsAttachment
)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A step to append, with an attachment that is stored in the same transaction."""

    draft: StepDraft
    attachment: StepAttachment | None = None
    """`None` means that the step has no attachment."""


StepReader = Callable[[], Awaitable[Sequence[Step]]]
"""Returns the steps that a transaction has appended. It may wait for the store."""

TransactionHook = Callable[[Any, StepReader], Awaitable[None]]
"""Callback at the end of a transaction. It receives the connection of the store and a reader of the new steps."""


class JournalStore(Protocol):
    """Stores the steps of a run."""

    async def append_entries(
        self, entries: Sequence[JournalEntry], usage: UsageDelta, hook: TransactionHook | None = None
    ) -> list[Step]:
        """Append entries and add the usage, in one transaction.

        Raises LeaseLostError if another worker owns the run, AlreadyRecordedError if a key already has a
        step, and Unavailable if the outcome is unknown or nothing was written.
        """
        ...

    async def find_entries(self, entries: Sequence[JournalEntry], after_seq: int) -> list[Step] | None:
        """Return the steps of entries that an earlier `append_entries` may have appended after `after_seq`.

        `None` means that they were not appended. Without entries, return an empty list if the run was
        released.
        """
        ...

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], side_effect: SideEffect) -> bool:
        """Record that a side effect is about to happen. Return `False` if an earlier claim recorded it."""
        ...


class StepStore(Protocol):
    """Reads stored steps."""

    async def get_steps(self, seqs: Sequence[int]) -> Sequence[Step]:
        """Return existing steps in the requested order. Missing steps are left out."""
        ...

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        """Return the last steps of a kind, oldest first."""
        ...

    async def list_user_messages(self) -> Sequence[Step]:
        """Return the messages of users to the run, oldest first."""
        ...


class ReportStore(Protocol):
    """Reads reports and the texts that they quote."""

    async def find_latest_report(self) -> Report | None:
        """Return the run's latest report. `None` means that there is none."""
        ...

    async def read_texts(self, spans: Sequence[SourceSpan]) -> Sequence[str | None]:
        """Return the stored text of each span. It is shorter if its text ends before the span does.

        `None` stands for a deleted text.
        """
        ...


class SegmentStore(Protocol):
    """Reads the segments of role calls."""

    async def get_segment_tails(self) -> tuple[int, Mapping[str, SegmentTail]]:
        """Return the number of the run's next segment, and the tail of each role's latest segment."""
        ...


class SpendingStore(Protocol):
    """Enforces the daily spending limit of the tenant."""

    async def reserve(self, usd: Decimal) -> date | None:
        """Reserve money, and return the day of the reservation. `None` means that the limit is reached."""
        ...


@dataclass(frozen=True, slots=True)
class InterruptRequest:
    """The input request of an interrupt."""

    request: InputRequest
    is_consumed: bool
    """Whether a step of the run has consumed the response."""


class InputRequestStore(Protocol):
    """Reads input requests."""

    async def list_interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        """Return the existing input requests of the graph's own interrupts, by interrupt id."""
        ...

    async def find_input_request(self, number: int, *, take_default: bool) -> InputRequest | None:
        """Return an input request. If it is overdue, its default is stored as the response.

        `take_default` stores the default immediately. `None` means that no person was asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """A report of an earlier run of the thread."""

    run_id: UUID
    question: str
    report: Report


@dataclass(frozen=True, slots=True)
class ThreadSentence:
    """A sentence of an earlier report with its citations."""

    run_id: UUID
    question: str
    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The earlier run that a follow-up is about."""

    question: str
    report: Report
    tool_results: tuple[Step, ...]
    """Its latest tool results, oldest first."""


class ThreadStore(Protocol):
    """Reads the earlier runs of the thread."""

    async def find_earlier_run(self, follow_up: FollowUp) -> EarlierRun | None:
        """Return the run and the version of the report that a follow-up is about. `None` means that it was deleted."""
        ...

    async def list_thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        """Return the reports of earlier runs, newest first."""
        ...

    async def list_thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        """Return the key, text and run of notes of earlier runs, newest first. Each key occurs once."""
        ...


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A child run from the view of its parent."""

    id: UUID
    status: RunStatus
    stop_reason: StopReason | None
    error: str
    """Empty means that there was no error."""
    usage: RunUsage
    has_ended: bool


@dataclass(frozen=True, slots=True)
class StoredChildResult:
    """The stored result of an ended child run."""

    report: Report | None
    tool_results: tuple[Step, ...]
    """The tool results of the child run."""
    call_counts: Mapping[str, int]
    """Number of calls of each tool, including those of its own child runs."""
    received_bytes: Mapping[str, int]
    """Bytes that each tool returned."""
    verification: Step | None = None
    """The last verification of the child run. `None` means that it has none."""


@dataclass(frozen=True, slots=True)
class ParentUsage:
    """The usage of the parent so far."""

    usage: RunUsage
    call_counts: Mapping[str, int]
    received_bytes: Mapping[str, int]


class ChildRunStore(Protocol):
    """Creates child runs and reads their results."""

    async def create_children(
        self, requests: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        """Return the child run of each request. Child runs of an earlier claim are not created again."""
        ...

    async def get_child_result(self, run_id: UUID) -> StoredChildResult:
        """Return the result of an ended child run."""
        ...


class ItemSource(Protocol):
    """Items of LangGraph's store that a run shares with others."""

    async def read_items(
        self, ops: Sequence[Any], queries: Sequence[Vectors | None], unsaved: Sequence[ItemPut]
    ) -> Sequence[Any]:
        """Return the result of each read operation, as if the unsaved puts were stored.

        `queries` are the query vectors of searches.
        """
        ...

    async def check_capacity(self, new_items: int) -> None:
        """Raise InvalidInput if the new items would exceed the limit."""
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
    """Everything that the kernel reads and writes for one run."""


class LiveSink(Protocol):
    """The live subscribers of one run. Its methods never raise."""

    async def publish_steps(self, steps: Sequence[Step], /) -> None: ...

    async def publish_action(self, text: str | None, /) -> None:
        """Show what the run is doing now. `None` means that no action is in progress."""
        ...

    @property
    def shows_drafts(self) -> bool:
        """Whether someone may watch answers while they are written."""
        ...

    async def publish_draft(self, part: DraftPart, /) -> None:
        """Show more text of an answer while it is written. The sink sets the fence."""
        ...

    async def end_draft(self, call_id: str, /) -> None:
        """Remove the draft of a role call. An empty id removes all drafts of the run."""
        ...
