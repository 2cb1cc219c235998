"""The run store of one run in Postgres, for one epoch of a claim."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from offing.bus.notifier import RunDispatcher
from offing.core.follow_up import FollowUp
from offing.core.input_request import InputRequest, Responder
from offing.core.model import EngineResponse
from offing.core.report import Report
from offing.core.report_edit import build_follow_up_version
from offing.core.run import FencingToken, RunStatus
from offing.core.step import CallKey, Step, StepKind
from offing.core.store_item import ItemPut
from offing.core.tool import SideEffect, SourceSpan
from offing.core.trajectory import SegmentTail
from offing.core.usage import UsageDelta
from offing.kernel.run_store import (
    ChildRun,
    ChildRunAttachment,
    EarlierRun,
    InputRequestAttachment,
    InputResponseAttachment,
    InterruptRequest,
    ItemsAttachment,
    JournalEntry,
    ParentUsage,
    ReportAttachment,
    RoleCallAttachment,
    StepAttachment,
    StoredChildResult,
    ThreadReport,
    ToolPolicyAttachment,
    TransactionHook,
)
from offing.sdk import Graph
from offing.sdk.child_runs import ChildRequest, ChildRunsUnavailable
from offing.services import child_runs as child_services
from offing.services.library import read_windows
from offing.storage import (
    child_runs,
    claims,
    daily_spend,
    input_requests,
    intents,
    reports,
    role_calls,
    segments,
    steps,
    store_items,
    thread_history,
    tool_policies,
)
from offing.storage.input_requests import NewInputRequest
from offing.storage.pool import Connection, Database
from offing.storage.role_calls import RoleCallRow
from offing.storage.runs import RunRow

MAX_TOOL_RESULTS = 10_000
"""Maximum number of tool results of a child run that are read."""


class CheckpointWriter(Protocol):
    """Writes checkpoints together with the next append."""

    async def save_due(self, connection: Connection) -> Any:
        """Write the due checkpoints in the caller's transaction, and return them. Raises LeaseLostError."""
        ...

    def confirm_saved(self, due: Any) -> None:
        """Confirm that the transaction was committed."""
        ...


class PostgresRunStore:
    """The `RunStore` of one epoch. Each append renews the lease for `lease_seconds`."""

    def __init__(
        self,
        database: Database,
        row: RunRow,
        fencing_token: FencingToken,
        lease_seconds: float,
        checkpointer: CheckpointWriter,
        graphs: Mapping[str, Graph],
        dispatcher: RunDispatcher,
    ) -> None:
        self._database, self._row, self._fence, self._lease_seconds = database, row, fencing_token, lease_seconds
        self._checkpointer, self._graphs, self._dispatcher = checkpointer, graphs, dispatcher
        self._unconfirmed_checkpoints: Any = ()
        """Checkpoints in the latest write attempt."""

    # Journal ----------------------------------------------------------------------------------------------------------

    async def append_entries(
        self, entries: Sequence[JournalEntry], usage: UsageDelta, hook: TransactionHook | None = None
    ) -> list[Step]:
        drafts = [entry.draft for entry in entries]
        with steps.append_errors(self._fence, drafts):
            async with self._database.transaction(self._fence.tenant_id, pipelined=True) as connection:
                await self._lock_edited_runs(connection, entries)
                append = await steps.send_append(connection, self._fence, self._lease_seconds, drafts, usage)
                self._unconfirmed_checkpoints = await self._checkpointer.save_due(connection)
                await self._store_attachments(connection, entries, append)
                if untrained := [d.excluded_role_call_seq for d in drafts if d.excluded_role_call_seq]:
                    await role_calls.exclude_from_training(connection, self._fence.run_id, untrained)
                if hook is not None:
                    await hook(connection, append.read_steps)
                if usage.cost_usd or usage.released_usd:  # last, because all runs of the tenant share that row
                    await daily_spend.settle_reservation(
                        connection, self._fence, usage.released_usd, usage.cost_usd, usage.reservation_day
                    )
        self._checkpointer.confirm_saved(self._unconfirmed_checkpoints)
        return await append.read_steps()

    async def find_entries(self, entries: Sequence[JournalEntry], after_seq: int) -> list[Step] | None:
        steps = await self._find_steps([entry.draft for entry in entries], after_seq)
        if steps is not None:
            self._checkpointer.confirm_saved(self._unconfirmed_checkpoints)
        return steps

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], side_effect: SideEffect) -> bool:
        async with self._transaction() as connection:
            return await intents.insert_intent(connection, self._fence, key, tool, dict(args), side_effect)

    # Steps, reports and segments --------------------------------------------------------------------------------------

    async def get_steps(self, seqs: Sequence[int]) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.list_steps_by_seq(connection, self._fence.run_id, seqs)

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.list_last_steps(connection, self._fence.run_id, kind, limit)

    async def list_user_messages(self) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.list_user_messages(connection, self._fence.run_id, 0)

    async def find_latest_report(self) -> Report | None:
        async with self._transaction() as connection:
            return await reports.find_own_report(connection, self._fence.run_id)

    async def read_texts(self, spans: Sequence[SourceSpan]) -> Sequence[str | None]:
        return await read_windows(self._database, self._fence.tenant_id, spans)

    async def get_segment_tails(self) -> tuple[int, Mapping[str, SegmentTail]]:
        async with self._transaction() as connection:
            return await segments.read_segment_tails(connection, self._fence.run_id)

    # Money and people -------------------------------------------------------------------------------------------------

    async def reserve(self, usd: Decimal) -> date | None:
        async with self._transaction() as connection:
            return await daily_spend.reserve(connection, self._fence, usd)

    async def find_input_request(self, number: int, *, take_default: bool) -> InputRequest | None:
        run = self._fence.run_id
        async with self._transaction() as connection:
            request = await input_requests.find_input_request(connection, run, number)
            if request is None or request.response or request.input_prompt.default is None:
                return request
            if take_default or await input_requests.is_overdue(connection, run, number):
                await input_requests.store_response(
                    connection, run, request, request.input_prompt.default, Responder.DEFAULT
                )
            return await input_requests.find_input_request(connection, run, number)

    async def list_interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        async with self._transaction() as connection:
            requests = await input_requests.list_input_requests_of_interrupts(connection, self._fence.run_id, ids)
            fresh = await input_requests.list_unconsumed(connection, self._fence.run_id, ids)
        return {id_: InterruptRequest(one, one.seq not in fresh) for id_, one in requests.items()}

    # The thread and child runs ----------------------------------------------------------------------------------------

    async def find_earlier_run(self, follow_up: FollowUp) -> EarlierRun | None:
        async with self._transaction() as connection:
            question = await thread_history.find_question(connection, follow_up.run_id)
            report = await reports.find_report(connection, follow_up.run_id, follow_up.version)
            if question is None or report is None:
                return None
            calls = await steps.list_last_steps(connection, follow_up.run_id, StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
        return EarlierRun(question, report, tuple(calls))

    async def list_thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        thread_reports: list[ThreadReport] = []
        async with self._transaction() as connection:
            for run, question in await thread_history.list_earlier_runs(
                connection, self._row.thread_id, self._fence.run_id, limit
            ):
                if report := await reports.find_latest_report(connection, run):
                    thread_reports.append(ThreadReport(run, question, report))
        return thread_reports

    async def list_thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        async with self._transaction() as connection:
            return await thread_history.list_notes(connection, self._row.thread_id, self._fence.run_id, limit)

    async def create_children(
        self, requests: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        if self._row.kind == "rollout":
            return ChildRunsUnavailable(
                "A rollout cannot start child runs, because their actions would not come from its policy."
            )
        if self._row.durability == "exit":
            return ChildRunsUnavailable("A run that writes nothing before its end cannot wait for others.")
        async with self._transaction() as connection:
            children = await child_services.create_children(
                connection, self._fence, self._row, requests, self._graphs, usage
            )
        if isinstance(children, ChildRunsUnavailable):
            return children
        for child in children:
            if child.status is RunStatus.QUEUED and child.fence == 0:
                await self._dispatcher.dispatch_run(child.id)
        return [_child_run_from_row(row) for row in children]

    async def get_child_result(self, run_id: UUID) -> StoredChildResult:
        async with self._transaction() as connection:
            report = await reports.find_own_report(connection, run_id)
            calls = await steps.list_last_steps(connection, run_id, StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
            verifications = await steps.list_last_steps(connection, run_id, StepKind.VERIFICATION, 1)
            used = await child_runs.sum_tool_usage(connection, run_id, "used")
            received = await child_runs.sum_tool_usage(connection, run_id, "received")
        return StoredChildResult(report, tuple(calls), used, received, verifications[-1] if verifications else None)

    def _transaction(self):
        return self._database.transaction(self._fence.tenant_id)

    async def _store_attachments(
        self, connection: Connection, entries: Sequence[JournalEntry], append: steps.SentAppend
    ) -> None:
        """Store the attachments of the steps of one append.

        Those of nearly every append refer to steps by their index, so that they do not wait for the seqs.
        """
        pairs = [(entry.attachment, nth) for nth, entry in enumerate(entries) if entry.attachment is not None]
        if rows := [
            _build_role_call_row(record, nth) for record, nth in pairs if isinstance(record, RoleCallAttachment)
        ]:
            await role_calls.insert_role_calls(connection, self._fence, rows, appended=len(entries))
        if puts := [put for record, _ in pairs if isinstance(record, ItemsAttachment) for put in record.puts]:
            await self._put_items(connection, puts)
        for record, nth in pairs:
            await self._store_attachment(connection, record, nth, append)

    async def _store_attachment(
        self, connection: Connection, attachment: StepAttachment, nth: int, append: steps.SentAppend
    ) -> None:
        """Store the attachment of step `nth` of an append, starting with 0."""
        run = self._fence.run_id
        match attachment:
            case ReportAttachment(report, last_calls):
                await reports.insert_report(connection, self._fence, nth, report, appended=append.count)
                await self._store_follow_up_version(connection, report)
                if last_calls:
                    await role_calls.mark_final_calls(connection, run, last_calls)
            case InputRequestAttachment(asking, interrupt_id):
                await input_requests.insert_input_request(
                    connection, self._fence, NewInputRequest(await append.read_seq(nth), asking, interrupt_id)
                )
            case InputResponseAttachment(number):
                await input_requests.mark_consumed(connection, run, number, await append.read_seq(nth))
            case ChildRunAttachment(child):
                await child_runs.mark_consumed(connection, run, child)
            case ToolPolicyAttachment(policy):
                await tool_policies.update_tool_policy(connection, run, policy)
            case _:
                pass

    async def _lock_edited_runs(self, connection: Connection, entries: Sequence[JournalEntry]) -> None:
        """Lock the runs whose reports these entries edit, before the append locks the run itself.

        A deletion locks the runs of a thread oldest first, and each would wait for the other.
        """
        for entry in entries:
            report = entry.attachment.report if isinstance(entry.attachment, ReportAttachment) else None
            if report is not None and report.follow_up is not None and self._build_version(report) is not None:
                await reports.lock_reported_run(connection, report.follow_up.run_id)

    async def _store_follow_up_version(self, connection: Connection, report: Report) -> None:
        """Store the report of a follow-up that is an edit as the next version of the report that it edited, too."""
        if report.follow_up is not None and (version := self._build_version(report)) is not None:
            await reports.insert_follow_up_version(
                connection, report.follow_up.run_id, report.follow_up.version, version
            )

    def _build_version(self, report: Report) -> Report | None:
        """Return the version that a follow-up makes of an earlier report. `None` means that it makes none."""
        return build_follow_up_version(report, self._fence.run_id, self._row.question)

    async def _put_items(self, connection: Connection, puts: Sequence[ItemPut]) -> None:
        """Store items. Items of a rollout are only in its steps, from which its private items are built."""
        if not self._row.has_own_store:
            await store_items.write_items(connection, self._fence.tenant_id, puts, self._fence.run_id)

    async def _find_steps(self, drafts: Sequence[Any], after_seq: int) -> list[Step] | None:
        async with self._transaction() as connection:
            if not drafts:
                return [] if await claims.is_released(connection, self._fence) else None
            later_steps = await self._list_later_steps(connection, drafts, after_seq)
        ours = {(s.call_key, s.kind): s for s in later_steps if s.fence == self._fence.number}
        if any((d.call_key, d.kind) not in ours for d in drafts):
            return None
        return [ours[d.call_key, d.kind] for d in drafts]

    async def _list_later_steps(self, connection: Connection, drafts: Sequence[Any], after_seq: int) -> list[Step]:
        """Return later steps, which include those of `drafts` if they were stored."""
        run, superstep = self._fence.run_id, min((d.call_key.superstep for d in drafts if d.call_key), default=None)
        later = await steps.list_steps_after(connection, run, after_seq, max(1000, len(drafts)))
        if superstep is None:
            return later
        # A parallel append may have been noted first, while ours have a smaller seq.
        return later + list((await steps.load_journal(connection, run, superstep - 1)).values())


def _build_role_call_row(attachment: RoleCallAttachment, nth: int) -> RoleCallRow:
    if isinstance(attachment.completion, EngineResponse):
        return role_calls.build_role_call_row(nth, attachment.origin, attachment.completion, attachment.position)
    assert attachment.position is not None
    return role_calls.build_rejected_row(nth, attachment.origin, attachment.completion, attachment.position)


def _child_run_from_row(row: RunRow) -> ChildRun:
    return ChildRun(row.id, row.status, row.stop_reason, row.error or "", row.usage, row.is_terminal)
