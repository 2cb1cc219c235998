"""The interface between a node and the platform.

Every method that appends a record is journaled under (superstep, task path, ordinal). When a node
runs again after a crash, the same calls return the recorded results, and nothing is charged, done
or decided twice. A node must therefore make the same calls in the same order for the same state and
the same recorded results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol
from uuid import UUID

from offing.core.claim_check import DraftClaimCheck
from offing.core.claim_passages import ClaimToJudge
from offing.core.draft_check import DraftCheck
from offing.core.follow_up import FollowUp
from offing.core.interaction import Interaction
from offing.core.model import EngineFailure
from offing.core.report import Evidence, Report, ReportDraft, ReportRevision
from offing.core.report_style import ReportStyle
from offing.core.run import Budget, RunUsage, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec
from offing.core.trajectory import BoundaryReason
from offing.sdk.child_runs import ChildRequest, ChildResult, ChildRunsUnavailable
from offing.sdk.earlier_report import EarlierReport, FollowUpResult
from offing.sdk.human_input import PlanProposal, PlanReview, ReviewDecision
from offing.sdk.role import Role
from offing.sdk.thread_memory import ThreadFinding, ThreadNote
from offing.sdk.type_vars import Input, Output


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Information about the current run."""

    id: UUID
    question: str
    prior_exchanges: tuple[tuple[str, str], ...] = ()
    """Question and short answer of the thread's earlier runs, oldest first."""
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    """Seed for graphs that need randomness. It is fixed for the run."""
    origin_run_id: UUID | None = None
    """Id of the run that recorded a fork's first steps; the state may contain it.

    `None` means that the run is not a fork.
    """
    report_style: ReportStyle | None = None
    """What the user asks of the form of the report, for the graph's writer. `None` means nothing."""
    follow_up: FollowUp | None = None
    """The earlier report that the run is about. `None` means that there is none."""
    interactions: frozenset[Interaction] = frozenset()
    """When the person wants to be asked before the run researches; see `Graph.interactions`. Empty means never."""


@dataclass(frozen=True, slots=True)
class RoleReply(Generic[Output]):
    """An accepted response of a role."""

    seq: int
    output: Output
    tokens: tuple[int, int] = (0, 0)
    """Prompt and completion tokens, including failed attempts. Set only for chats."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool name with JSON arguments. Both may come from a model and are validated before the call."""

    tool: str
    args: dict[str, Any]


class RunContext(Protocol):
    """Context of the current run.

    Every node receives it as LangGraph's runtime context, `runtime.context`.
    """

    @property
    def run(self) -> RunInfo: ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Tools that the tool policy of the run does not always forbid."""
        ...

    @property
    def usage(self) -> RunUsage: ...

    def get_context_tokens(self, role: str) -> int | None:
        """Return the tokens of the context window of the model that answers a role, by the role's name.

        It is the same for the whole run. `None` means that the engine has no window or that it is unknown.
        """
        ...

    def get_answer_tokens(self, role: str) -> int | None:
        """Return the maximum tokens of an answer of the model that answers a role, by the role's name.

        Thinking is not included. It is the same for the whole run. `None` means that the engine has no such limit
        or that it is unknown.
        """
        ...

    def stop_reason(self) -> StopReason | None:
        """Return why the run should stop collecting and write its report.

        The reason is a reached limit or a person's request. `None` means that the run may continue.
        """
        ...

    async def begin_turn(self, number: int) -> None:
        """Begin turn `number` of the loop, from 1. It counts against the turn limit but is not a step."""
        ...

    async def call_role(
        self, role: Role[Input, Output], inputs: Input, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> RoleReply[Output] | EngineFailure:
        """Call the engine that the run's configuration names for this role.

        A failure is also recorded as a step.

        `boundary` is the reason why the context does not continue from the role's last call. `None` means
        that it does or that it is rebuilt for every call; the recorder then compares the prompts.
        """
        ...

    async def call_tool(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        """Validate, decide, execute and record a tool call.

        The tool policy decides the call. The tool's timeout applies.
        """
        ...

    async def call_tools(self, calls: Sequence[ToolCall], *, turn: int = 0) -> tuple[ToolResult, ...]:
        """Make tool calls at the same time, and return their results in the order of the calls.

        Each call is validated, decided, executed and recorded like one of `call_tool`, so a call that fails
        is a result like any other. Ids of passages follow the order of the calls, whatever finishes
        first. If a call waits for a person, the others are finished and recorded first. A single call is
        the same as `call_tool`.
        """
        ...

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        default: str | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> str:
        """Ask a person and wait for the response without occupying a worker.

        `choices` are the only allowed responses; empty means any text. `default` is the response after
        `timeout_seconds`, in a rollout, and after the run was requested to finish. Without a default, a run
        waits without a limit, and a rollout raises NoResponderError. Ask one question after another, or
        each in a branch of the graph: a node that waits runs again from its beginning.
        """
        ...

    async def approve(
        self,
        action: str,
        detail: str = "",
        *,
        default: bool | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> bool:
        """Ask a person to approve an action before the run takes it. `detail` is shown, too. Waits like `ask`."""
        ...

    async def review(
        self,
        plan: PlanProposal,
        *,
        default: ReviewDecision | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> PlanReview:
        """Show a person a plan to approve, edit or comment on. Waits like `ask`."""
        ...

    async def restrict_tools(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        """Restrict the run's tools from now on by rules as JSON, which may come from a model.

        The proposed allow rules replace those of the run for the same tools; all other rules are added.
        Returns an empty string if they are in force. Otherwise it returns the reason: they are invalid, or
        they are not proved to allow no more than before.
        """
        ...

    async def run_children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | ChildRunsUnavailable:
        """Start child runs, wait for all of them, and return their results in order.

        Waiting occupies no worker. The budget of the child runs is taken from this run's, and their usage
        is charged to it, including turns; the graph must add these to its turn counter. Returns
        `ChildRunsUnavailable` if the work must be done in sequence, as in a rollout. A node that waits runs
        again from its beginning.
        """
        ...

    async def search_thread(self, query: str, limit: int = 8, *, turn: int = 0) -> tuple[ThreadFinding, ...]:
        """Return the sentences of the thread's earlier reports that are most similar to the query, best first.

        Passages that they quote become evidence of this run. Empty means that this is the thread's first
        run or that nothing matches.
        """
        ...

    async def load_earlier_report(self, *, with_evidence: bool = True) -> EarlierReport | None:
        """Return the report that this follow-up is about. The lookup is a step.

        Passages that it cites become evidence of this run, and with `with_evidence` all that the earlier run
        has retrieved. Texts that were deleted since do not. `None` means that the run follows no report, or that
        the report was deleted.
        """
        ...

    async def save_note(self, key: str, text: str) -> None:
        """Save a note for the thread's later runs.

        It replaces an earlier note with this key and is recorded as a step.
        """
        ...

    async def load_notes(self) -> tuple[ThreadNote, ...]:
        """Return the notes of the thread's earlier runs, the latest of each key, newest first.

        They are untrusted.
        """
        ...

    async def append_steps(self, *drafts: StepDraft) -> None:
        """Append steps, such as memory records. They are recorded no later than the run's next append."""
        ...

    async def last_steps(self, kind: StepKind, limit: int) -> tuple[Step, ...]:
        """Return this run's last `limit` steps of a kind with their payload, oldest first.

        Steps that were just appended are included.
        """
        ...

    async def get_steps(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        """Return steps of this run by number, in the requested order."""
        ...

    async def get_user_messages(self, after_seq: int) -> tuple[Step, ...]:
        """Return the user messages to this run after step `after_seq`. 0 means all of them."""
        ...

    async def get_evidence(self, limit: int) -> tuple[Evidence, ...]:
        """Return passages that this run's tools have retrieved, in the order of first retrieval.

        Each passage occurs once; the ids start at E1. At most the latest `limit` passages are returned.
        Their ids do not depend on `limit`.
        """
        ...

    async def check_report(self, draft: ReportDraft) -> DraftCheck:
        """Check a draft as `submit_report` does, and return its problems with what the texts say.

        Nothing is recorded. The same draft has the same problems as long as the stored texts are the same.
        """
        ...

    def can_revise(self, role: Role[Any, Any]) -> bool:
        """Return whether the engine of a role can answer a request to correct a draft.

        That is a model in a prompt format that has such a request: not a rule, not the `extractive` engine,
        and not the format `compact`.
        """
        ...

    def has_engine(self, role: Role[Any, Any]) -> bool:
        """Return whether the run names an engine for an optional role, see `Graph.optional_roles`."""
        ...

    async def list_claims(self, draft: ReportDraft) -> tuple[ClaimToJudge, ...]:
        """Return the sentences of a draft that cite a passage, each with the stored text around its quotes.

        Nothing is recorded. The same draft has the same claims as long as the stored texts are the same.
        """
        ...

    async def submit_report(
        self,
        draft: ReportDraft,
        stop_reason: StopReason,
        *,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> Report:
        """Verify every quote of the draft against the stored text, record the report, and return it.

        Numbers, dates and names of cited sentences that are in no quote are marked. `revision` is stored with
        the report. `None` means that the draft did not go back to its writer. `follow_up` is the earlier report
        that this one answers a question on or replaces. The changes are computed by comparison and stored with it.
        The words that a checker quotes in `check` are verified, too, and its judgments can only lower the verdict of
        a sentence. `None` means that the run has no checker.
        """
        ...
