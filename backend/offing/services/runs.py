"""Submit runs and control them: submit, cancel, pause, resume, send user messages.

Each function is one transaction followed by best-effort notifications. Only workers advance runs.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.follow_up import FollowUp
from offing.core.interaction import Interaction
from offing.core.model import EngineConfig, describe_engine, engine_to_digest_json
from offing.core.report_style import ReportStyle
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind, shorten_line
from offing.core.tool_policy import ToolPolicy, hash_tool_policy
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import follow_ups, policies, providers
from offing.services import graphs as graph_registry
from offing.services.engine_configs import complete_engines, select_engines
from offing.services.follow_ups import FollowUpRequest, keep_engines, merge_scopes
from offing.services.offline_runs import check_offline
from offing.services.run_tool_policy import build_tool_policy
from offing.storage import child_runs, runs, steps, tenants, threads
from offing.storage.assumptions import WrongAssumptionError
from offing.storage.pool import Connection, Database
from offing.storage.runs import NewRun, RunRow, budget_to_json


@dataclass(frozen=True, slots=True)
class RunIds:
    """The ids of a run that somebody follows before it is stored, so that no event is missed."""

    run_id: UUID
    thread_id: UUID
    """The thread that the run opens or continues."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request for a run."""

    question: str
    graph: str = "agentflow"
    thread_id: UUID | None = None
    """The thread of the run. `None` means a new thread."""
    budget: Budget = field(default_factory=Budget)
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The scope of the run: `collections` and `sources` that it may see, `web` if it may use the web, limited by
    `only_domains` and `excluded_domains`, `mcp`, the names of MCP servers whose tools it may use, and `offline` if
    nothing may leave this machine. Without collections and sources it sees the whole library, or in a thread what the
    last run saw.
    """
    named_scope: frozenset[str] = frozenset()
    """Keys of the scope that a follow-up names although they are off. It keeps the others of the last run."""
    default_engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    """Engines by role that the installation names. Those of the request and of the thread's last run come first."""
    follow_up: FollowUpRequest | None = None
    """The follow-up. `None` means that a run in a thread whose latest run has a report decides by itself."""
    deadline: datetime | None = None
    seed: int = 0
    tool_policy: ToolPolicy | None = None
    """The tool policy. `None` means that of the last question in the thread, else the default for the scope."""
    report_style: ReportStyle | None = None
    """The form of the report. `None` means that of the last question in the thread. An empty style asks for nothing."""
    interactions: frozenset[Interaction] = frozenset()
    """When the run asks a person before it researches. Empty means never."""
    remote_library_model: str = ""
    """The embedding model or reranker of the installation that is not on this machine. Empty means that there is none.
    """
    idempotency_key: str | None = None
    traceparent: str | None = None
    durability: str = "sync"
    """The durability. `exit` writes nothing before a slice ends. A crash repeats the slice with the same seed."""
    protocol: str | None = None
    """The protocol of the client, such as `langgraph`. `None` means Offing's own. Runs of others follow no report."""
    enqueued: bool = False
    """Whether the run waits for the earlier runs of its thread."""
    ids: RunIds | None = None
    """The ids of the run. `None` means new ones."""


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    run: RunRow
    is_new: bool
    """`False` if an earlier request with the same idempotency key created this run."""
    opens_thread: bool = False
    """Whether the run is new and the first of its thread, so that nobody can have changed it yet."""


async def submit_run(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    request: RunRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig | None = None,
    servers: McpServerRegistry | None = None,
) -> SubmittedRun:
    """Accept a run. The run and its first step are stored before this returns, even if Redis is unavailable.

    `servers` are the MCP servers that a scope may name; `None` means that there are none.
    """
    submitted = await _submit_run(
        database, notifier, tenant_id, request, graphs, default_engine, servers, checks_default_preset=False
    )
    assert submitted is not None
    return submitted


async def submit_run_without_preset(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    request: RunRequest,
    *,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig | None = None,
    servers: McpServerRegistry | None = None,
) -> SubmittedRun | None:
    """Do the same as `submit_run` for a question that names neither a preset nor an engine.

    `None` means that nothing is stored, because the tenant has a default preset, which the request must have.
    """
    return await _submit_run(
        database, notifier, tenant_id, request, graphs, default_engine, servers, checks_default_preset=True
    )


async def _submit_run(
    database: Database,
    notifier: RunNotifier,
    tenant_id: UUID,
    request: RunRequest,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig | None,
    servers: McpServerRegistry | None,
    *,
    checks_default_preset: bool,
) -> SubmittedRun | None:
    graph = graph_registry.get_graph(graphs, request.graph)
    check_report_style(graph, request.report_style)
    check_interactions(graph, request.interactions)
    default, assumptions = default_engine or EngineConfig(), database.assumptions

    async def submit(preset_check: _PresetCheck) -> SubmittedRun | None:
        with runs.insert_errors(request.thread_id):
            async with database.transaction(tenant_id, pipelined=True) as connection:
                if await _has_default_preset(connection, tenant_id, preset_check):
                    return None
                if request.idempotency_key and (
                    earlier := await runs.find_earlier_submission(connection, request.idempotency_key)
                ):
                    return check_same_request(earlier, _hash_request(request))
                sent_run = await send_run(connection, tenant_id, request, graphs, default, servers)
        run = await sent_run.read_run()
        # Nobody follows the run yet, because nobody has had its id, so that its first step is not published.
        await notifier.dispatch_run(run.id)
        return SubmittedRun(run, True, request.thread_id is None)

    if not checks_default_preset:
        return await submit(_PresetCheck.NONE)
    if assumptions.may_hold(tenant_id, tenant_id):
        try:
            with assumptions.check(tenant_id, tenant_id):
                return await submit(_PresetCheck.ASSUMPTION)
        except WrongAssumptionError:
            return None
        except (InvalidInput, NotFound):
            pass  # the default preset may name what is missing
    submitted = await submit(_PresetCheck.READ)
    if submitted is not None:
        assumptions.forget(tenant_id, tenant_id)
    return submitted


class _PresetCheck(Enum):
    """How a transaction finds out whether there is a default preset."""

    NONE = "none"
    """It does not need to know."""
    ASSUMPTION = "assumption"
    """It fails if there is one, which costs no round trip."""
    READ = "read"


async def _has_default_preset(connection: Connection, tenant_id: UUID, check: _PresetCheck) -> bool:
    if check is _PresetCheck.ASSUMPTION:
        await tenants.send_default_preset_check(connection, tenant_id)
    return check is _PresetCheck.READ and await tenants.find_default_preset(connection, tenant_id) is not None


async def send_run(
    connection: Connection,
    tenant_id: UUID,
    request: RunRequest,
    graphs: Mapping[str, Graph],
    default_engine: EngineConfig,
    servers: McpServerRegistry | None,
) -> runs.SentRun:
    """Store a run and its first step in the caller's transaction, which is inside `runs.insert_errors`.

    In a pipelined transaction, this does not wait for the row. The caller notifies the workers afterwards.
    """
    graph, digest = graph_registry.get_graph(graphs, request.graph), _hash_request(request)
    request, follow_up = await _place_in_thread(connection, request, graph, graphs)
    requested = {**request.default_engines, **request.engines}
    chosen = select_engines(graph, requested, default_engine)
    stored = await providers.list_needed(connection, chosen.values())
    engines = complete_engines(graph, requested, chosen, stored)
    new = _build_run(request, graph, engines, digest, servers or McpServerRegistry())
    check_offline(graph, request.scope, new.engines, stored, request.remote_library_model)
    new = replace(new, follow_up=follow_up)
    new = replace(new, engines=await policies.resolve_versions(connection, engines, new.id))
    if request.thread_id is None:
        await threads.insert_thread(connection, tenant_id, new.thread_id, shorten_line(request.question))
    first = [_draft_queued_step(request, new.engines)]
    sent = await runs.send_insert(connection, tenant_id, new, first_steps=len(first))
    await steps.send_first(connection, tenant_id, new.id, first)
    return sent


async def cancel_run(
    database: Database, notifier: RunNotifier, tenant_id: UUID, run_id: UUID, mode: CancelMode
) -> RunRow:
    """Cancel a run: at once if no worker has it, else at its next step boundary.

    Runs that have ended are unchanged.
    """
    ended: list[Step] = []
    async with database.transaction(tenant_id) as connection:
        row = await runs.lock_run(connection, run_id)
        if row.is_terminal:
            return row
        _check_not_rollout(row)
        await runs.request_cancel(connection, run_id, mode)
        if row.status is not RunStatus.RUNNING and mode is CancelMode.DISCARD:
            ended = await steps.append_external(
                connection, run_id, [draft_end_step(RunStatus.CANCELLED, StopReason.CANCELLED)]
            )
            await runs.set_run_status(connection, run_id, RunStatus.CANCELLED, StopReason.CANCELLED)
        elif row.status in (RunStatus.PAUSED, RunStatus.WAITING):
            await runs.set_run_status(connection, run_id, RunStatus.QUEUED)
        after = await runs.get_run(connection, run_id)
        children = await child_runs.list_active_child_ids(connection, run_id)
        parent = await child_runs.find_parent_id(connection, run_id) if ended and row.kind == "child" else None
    await _notify(notifier, tenant_id, after, ended)
    if parent is not None:
        await notifier.dispatch_run(parent)
    for child in children:  # in separate transactions: one that ends locks itself before its parent
        await cancel_run(database, notifier, tenant_id, child, mode)
    return after


async def pause_run(database: Database, notifier: RunNotifier, tenant_id: UUID, run_id: UUID) -> RunRow:
    """Pause a run at its next step boundary until it is resumed."""
    paused: list[Step] = []
    async with database.transaction(tenant_id) as connection:
        row = await lock_active_run(connection, run_id)
        if row.status is RunStatus.RUNNING:
            await runs.request_pause(connection, run_id, True)
        elif row.status is not RunStatus.PAUSED:
            paused = await steps.append_external(connection, run_id, [StepDraft(StepKind.PAUSED, "Paused by a person")])
            await runs.set_run_status(connection, run_id, RunStatus.PAUSED, waiting_for="a person to resume it")
        after = await runs.get_run(connection, run_id)
        children = await child_runs.list_active_child_ids(connection, run_id)
    await _notify(notifier, tenant_id, after, paused)
    for child in children:
        with suppress(Conflict):  # it has ended in the meantime
            await pause_run(database, notifier, tenant_id, child)
    return after


async def resume_run(database: Database, notifier: RunNotifier, tenant_id: UUID, run_id: UUID) -> RunRow:
    """Resume a paused run."""
    resumed: list[Step] = []
    async with database.transaction(tenant_id) as connection:
        row = await lock_active_run(connection, run_id)
        await runs.request_pause(connection, run_id, False)
        if row.status is RunStatus.PAUSED:
            resumed = await steps.append_external(
                connection, run_id, [StepDraft(StepKind.RESUMED, "Resumed by a person")]
            )
            await runs.set_run_status(connection, run_id, RunStatus.QUEUED)
        after = await runs.get_run(connection, run_id)
        children = await child_runs.list_active_child_ids(connection, run_id)
    await _notify(notifier, tenant_id, after, resumed)
    for child in children:
        with suppress(Conflict):  # it has ended in the meantime
            await resume_run(database, notifier, tenant_id, child)
    return after


async def send_user_message(
    database: Database, notifier: RunNotifier, tenant_id: UUID, run_id: UUID, text: str
) -> Step:
    """Send a user message to a run. Its planner reads the message when the next turn begins."""
    if not text.strip():
        raise InvalidInput("text", "the message is empty", "Write what the run should take into account.")
    async with database.transaction(tenant_id) as connection:
        await lock_active_run(connection, run_id)
        written = await steps.append_external(
            connection, run_id, [StepDraft(StepKind.USER_MESSAGE, text, {"text": text})]
        )
    await notifier.publish_steps(tenant_id, run_id, written)
    await notifier.notify_control(run_id)
    return written[0]


def draft_end_step(
    status: RunStatus, reason: StopReason, *, detail: str = "", report_version: int | None = None
) -> StepDraft:
    """Return the last step of a run."""
    payload = {"status": status, "stop_reason": reason, "detail": detail, "report_version": report_version}
    ok = status is not RunStatus.FAILED
    return StepDraft(StepKind.ENDED, f"Ended: {reason.replace('_', ' ')}", payload, detail=detail, ok=ok)


async def lock_active_run(connection: Connection, run_id: UUID) -> RunRow:
    """Lock a run for a person's intervention. Raises Conflict if it has ended or is a rollout."""
    row = await runs.lock_run(connection, run_id)
    if row.is_terminal:
        raise Conflict(f"Run {run_id} has ended ({row.status}).", "Ask a follow-up question in the thread instead.")
    _check_not_rollout(row)
    return row


def _check_not_rollout(row: RunRow) -> None:
    """Raise an error for a rollout, because a person's intervention would distort what it shows about its policy."""
    if row.kind == "rollout":
        raise Conflict(
            f"Run {row.id} is a rollout, which cannot be paused, cancelled or sent messages individually.",
            "Cancel its batch instead.",
        )


async def _notify(notifier: RunNotifier, tenant_id: UUID, run: RunRow, new: list[Step]) -> None:
    if new:
        await notifier.publish_steps(tenant_id, run.id, new)
    if run.status is RunStatus.QUEUED:
        await notifier.dispatch_run(run.id)
    elif run.status is RunStatus.RUNNING:
        await notifier.notify_control(run.id)


async def _place_in_thread(
    connection: Connection, request: RunRequest, graph: Graph, graphs: Mapping[str, Graph]
) -> tuple[RunRequest, FollowUp | None]:
    """Return the request with what it keeps of its thread, and the report that the run follows.

    `None` means that it follows no report.
    """
    thread_id = request.thread_id
    if request.follow_up is not None:
        thread_id = await follow_ups.resolve_thread(connection, request.follow_up, thread_id)
    if thread_id is None:
        return request, None
    request = await _inherit_from_thread(connection, replace(request, thread_id=thread_id), thread_id, graph)
    if request.protocol is not None:
        return request, None
    return request, await follow_ups.resolve_follow_up(connection, request.follow_up, thread_id, graph, graphs)


async def _inherit_from_thread(
    connection: Connection, request: RunRequest, thread_id: UUID, graph: Graph
) -> RunRequest:
    """Give a follow-up the scope, engines, tool policy and report style of the last run, where it names no others."""
    scope = merge_scopes(await threads.get_scope(connection, thread_id), request.scope, request.named_scope)
    engines = keep_engines(graph, await threads.get_engines(connection, thread_id))
    request = replace(request, scope=scope, engines={**engines, **request.engines})
    if (
        request.tool_policy is None
        and (inherited := await threads.find_requested_tool_policy(connection, thread_id)) is not None
    ):
        request = replace(request, tool_policy=ToolPolicy.model_validate(inherited))
    if request.report_style is None:
        request = replace(request, report_style=await threads.find_report_style(connection, thread_id))
    return request


def check_report_style(graph: Graph, style: ReportStyle | None) -> None:
    """Raise InvalidInput if a report style is asked of a graph that cannot read it."""
    if style is not None and not style.is_empty and graph.langgraph_adapter is not None:
        problem = f"{graph.name} is written for LangGraph alone and has no writer that could follow it"
        raise InvalidInput("report_style", problem, "Leave it out, or ask for the form in the question.")


def check_interactions(graph: Graph, interactions: frozenset[Interaction]) -> None:
    """Raise InvalidInput if a graph cannot ask a person as requested."""
    missing = sorted(interactions - set(graph.interactions))
    if missing:
        known = f"Use only {', '.join(graph.interactions)}" if graph.interactions else "Leave it out"
        raise InvalidInput("interactions", f"{graph.name} has no {missing[0]}", f"{known}, or use another graph.")


def _build_run(
    request: RunRequest,
    graph: Graph,
    engines: Mapping[str, EngineConfig],
    request_sha256: str,
    servers: McpServerRegistry,
) -> NewRun:
    policy = build_tool_policy(graph, request.scope, request.tool_policy, servers)
    style, ids = request.report_style, request.ids or RunIds(new_id(), request.thread_id or new_id())
    return NewRun(
        id=ids.run_id,
        thread_id=request.thread_id or ids.thread_id,
        graph=graph.name,
        graph_version=graph.version,
        question=request.question,
        engines=engines,
        tool_policy=policy.model_dump(mode="json"),
        tool_policy_sha256=hash_tool_policy(policy),
        budget=request.budget,
        scope=request.scope,
        seed=request.seed,
        deadline_at=request.deadline,
        idempotency_key=request.idempotency_key,
        request_sha256=request_sha256,
        traceparent=request.traceparent,
        durability=request.durability,
        requested_tool_policy=None if request.tool_policy is None else request.tool_policy.model_dump(mode="json"),
        report_style=None if style is None or style.is_empty else style,
        interactions=request.interactions,
        protocol=request.protocol,
        enqueued=request.enqueued,
    )


def _draft_queued_step(request: RunRequest, engines: Mapping[str, EngineConfig]) -> StepDraft:
    who = {name: describe_engine(choice) for name, choice in engines.items()}
    return StepDraft(
        StepKind.QUEUED, request.question, {"question": request.question, "graph": request.graph, "engines": who}
    )


def _hash_request(request: RunRequest) -> str:
    engines = {**request.default_engines, **request.engines}
    continues = request.thread_id is not None or request.follow_up is not None
    body = {
        "question": request.question,
        "graph": request.graph,
        "thread": request.thread_id,
        "budget": budget_to_json(request.budget),
        "engines": {name: engine_to_digest_json(choice) for name, choice in sorted(engines.items())},
        "scope": dict(request.scope),
        "seed": request.seed,
        **({"tool_policy": request.tool_policy.to_json()} if request.tool_policy else {}),
        **({"report_style": request.report_style.model_dump(mode="json")} if request.report_style else {}),
        **({"named_scope": sorted(request.named_scope)} if continues and request.named_scope else {}),
        **({"follow_up": asdict(request.follow_up)} if request.follow_up else {}),
        **({"interactions": sorted(request.interactions)} if request.interactions else {}),
    }
    return hashlib.sha256(orjson.dumps(body, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()


def check_same_request(earlier: tuple[RunRow, str], request_sha256: str) -> SubmittedRun:
    """Return the run that an idempotency key created earlier. Raises Conflict if the request was different."""
    run, its_digest = earlier
    if its_digest != request_sha256:
        raise Conflict(
            "This Idempotency-Key was used for another request.",
            "Use a new key, or repeat the first request unchanged.",
        )
    return SubmittedRun(run, False)
