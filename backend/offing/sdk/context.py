"""A node's way to the world. The worker implements it; a graph sees nothing else of the platform.

Every method that appends is journalled under (superstep, task path, ordinal): when a node runs again after a loss,
the same calls return what was recorded, and nothing is paid, done or decided twice. A node must therefore make the same
calls in the same order for the same state and the same recorded results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol
from uuid import UUID

from offing.core.model import EngineFailure
from offing.core.report import Evidence, Report, ReportDraft
from offing.core.run import Budget, Spent, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec
from offing.core.trajectory import Fracture
from offing.sdk.asking import Plan, Review, Verdict
from offing.sdk.children import ChildRequest, ChildResult, NoChildren
from offing.sdk.conversation import Note, Recalled
from offing.sdk.role import Role
from offing.sdk.values import Input, Output


@dataclass(frozen=True, slots=True)
class RunView:
    """What a graph may know of its run."""

    id: UUID
    question: str
    earlier: tuple[tuple[str, str], ...] = ()
    """Question and short answer of the thread's earlier runs, oldest first."""
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    """For graphs that need randomness; fixed for the run."""
    origin_id: UUID | None = None
    """Of a fork: the run in which its first steps were made, whose id its state may hold. None: it is no fork."""


@dataclass(frozen=True, slots=True)
class RoleReply(Generic[Output]):
    """An accepted answer in its place."""

    seq: int
    output: Output
    tokens: tuple[int, int] = (0, 0)
    """Of prompt and completion, failed attempts included; for chats only."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool by name with JSON arguments; both may come from a model and are checked before anything happens."""

    tool: str
    args: dict[str, Any]


class RunContext(Protocol):
    """Passed to every node as LangGraph's runtime context: `runtime.context`."""

    @property
    def run(self) -> RunView: ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Tools that this run's policy does not forbid outright."""
        ...

    @property
    def spent(self) -> Spent: ...

    def stop(self) -> StopReason | None:
        """Why the run should stop collecting and write now: a budget reached, or a person asking. None: go on."""
        ...

    async def begin_turn(self, number: int) -> None:
        """Say that turn `number` of the loop (from 1) starts. Counts against the turn budget; not a step."""
        ...

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        """Ask the engine that the run's configuration names for this role. A failure is recorded as a step, too.

        `fracture`: why the context does not go on from the role's last call, for the record. None: it goes on, or is
        built anew for every call; the record finds out.
        """
        ...

    async def use(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        """Validate, check against the policy, execute with its time-out, record."""
        ...

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        default: str | None = None,
        within: float | None = None,
        turn: int = 0,
    ) -> str:
        """Ask a person, and wait without a worker until somebody answers. `choices`: the only answers; empty: any text.

        `default` is the answer after `within` seconds, in a rollout, and once the run was told to write. Without one a
        run waits for as long as it takes, and a rollout raises Unanswered. Ask one question after another, or each in a
        branch of the graph: a node that waits is run again from its beginning.
        """
        ...

    async def approve(
        self, what: str, detail: str = "", *, default: bool | None = None, within: float | None = None, turn: int = 0
    ) -> bool:
        """Ask a person for a yes or a no to what the run is about to do. `detail` is shown, too. It waits as `ask`."""
        ...

    async def review(
        self, plan: Plan, *, default: Verdict | None = None, within: float | None = None, turn: int = 0
    ) -> Review:
        """Show a person a plan to approve, edit or comment on. Waits like `ask`."""
        ...

    async def narrow(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        """Narrow what the tools of the run may do from now on, by rules as JSON, which a model may have written.

        Its allow rules take the place of the run's for the same tools; all others are added. Empty: they are in force.
        Otherwise why not: they are invalid, or it is not proved that they allow no more than before.
        """
        ...

    async def children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | NoChildren:
        """Have runs started, wait for all of them without a worker, and take up what they brought, in their order.

        What they use is taken from this run's budget and booked to it, turns included: count them on. `NoChildren`:
        do the work in sequence, as in a rollout. A node that waits is run again from its beginning.
        """
        ...

    async def conversation(self, words: str, most: int = 8, *, turn: int = 0) -> tuple[Recalled, ...]:
        """The sentences of the thread's earlier reports that share most with these words, best first.

        What they quote becomes evidence of this run. Empty: this is the thread's first run, or nothing fits.
        """
        ...

    async def remember(self, key: str, text: str) -> None:
        """Leave a note for the thread's later runs, in place of what they would find under this key. Kept as a step."""
        ...

    async def remembered(self) -> tuple[Note, ...]:
        """The notes that the thread's earlier runs left, the latest of each key, newest first. Untrusted."""
        ...

    async def record(self, *drafts: StepDraft) -> None:
        """Append steps, such as memory records. They are on record no later than whatever the run appends next."""
        ...

    async def recall(self, kind: StepKind, last: int) -> tuple[Step, ...]:
        """This run's last `last` steps of a kind, oldest first, whole; those just recorded included."""
        ...

    async def fetch(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        """This run's steps by seq, in the order asked for."""
        ...

    async def messages(self, after: int) -> tuple[Step, ...]:
        """What people have written to this run since step `after` (0: since its beginning)."""
        ...

    async def evidence(self, last: int) -> tuple[Evidence, ...]:
        """Passages that this run's tools have retrieved, each once, in the order of first retrieval, E1 upwards.

        At most `last` of them, the latest; ids are stable however many are asked for.
        """
        ...

    async def deliver(self, draft: ReportDraft, reason: StopReason) -> Report:
        """Check every quote against the stored text, record the report, and return it as it now stands."""
        ...
