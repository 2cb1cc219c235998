"""Replay a run from Postgres. Nothing is written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from langgraph.checkpoint.memory import InMemorySaver

from offing.core.citation import TextLookup, widen_span
from offing.core.errors import Conflict, InvalidInput
from offing.core.run import RunStatus
from offing.core.step import Step
from offing.core.tool import SourceSpan
from offing.core.tool_policy import parse_stored_policy
from offing.kernel.replay import ReplayResult, replay_stored_run
from offing.kernel.stored_run import StoredRun
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph, RunInfo
from offing.services.graphs import custom_tools_of, find_graph_version
from offing.services.library import read_windows
from offing.services.mcp_access import select_usable
from offing.storage import reports, runs, steps, trajectories, trajectory_reads
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from offing.tools import create_tools
from offing.tools.mcp_tools import create_mcp_tools
from offing.tools.tool import Tool
from offing_workers.langgraph_replay import ReplaySaver, load_opening

MAX_STEPS = 10_000_000


async def replay_run(
    database: Database,
    tenant_id: UUID,
    run_id: UUID,
    graphs: Mapping[str, Graph],
    mcp_servers: McpServerRegistry | None = None,
) -> ReplayResult:
    """Replay a run that has ended.

    Raises NotFound, InvalidInput if the graph of the run is not installed, the run was upgraded or the state with
    which a run of LangGraph's clients began is not stored any more, and Conflict if the run has not ended.
    `mcp_servers` are the MCP servers whose tools the runs were shown. None of them is called.
    """
    async with database.transaction(tenant_id) as connection:
        row = await runs.get_run(connection, run_id)
    if not row.is_terminal:
        raise Conflict("The run has not ended.", "Wait for it to end, or cancel it.")
    graph = find_graph_version(graphs, row.graph, row.graph_version)
    if graph is None:
        problem = f"run {run_id} used {row.graph} {row.graph_version[:12]}, which is not installed"
        raise InvalidInput("RUN", problem, "Replay it where that version of the graph is installed.")
    opening = await load_opening(database, tenant_id, row, graph)
    shown_tools = _list_shown_tools(row, graph, mcp_servers)
    recording = replace(await _load_stored_run(database, tenant_id, row, shown_tools), opening=opening)
    _check_one_version(recording)
    text_of = await _load_quoted_texts(database, tenant_id, recording)
    create_saver = InMemorySaver if opening is None else lambda: ReplaySaver(opening.start)
    return await replay_stored_run(graph, recording, text_of, None, create_saver)


def _check_one_version(stored_run: StoredRun) -> None:
    """Raise InvalidInput for an upgraded run.

    No single version of its graph has made all of its recorded calls.
    """
    for step in stored_run.steps:
        if step.payload.get("after") == "upgrade":
            why = f"run {stored_run.run.id} continued with another version of its graph at step {step.seq}"
            raise InvalidInput("RUN", why, "Replay a run that used only one version.")


async def _load_stored_run(database: Database, tenant_id: UUID, row: RunRow, tools: Sequence[Tool]) -> StoredRun:
    async with database.transaction(tenant_id) as connection:
        return StoredRun(
            run=RunInfo(
                row.id,
                row.question,
                await trajectories.list_earlier_answers(connection, row.id),
                row.budget,
                row.seed,
                report_style=row.report_style,
                follow_up=row.follow_up,
                interactions=row.interactions,
            ),
            steps=tuple(await steps.list_steps_after(connection, row.id, 0, MAX_STEPS)),
            stop_reason=row.stop_reason or "",
            is_done=row.status is RunStatus.DONE,
            tool_policy=parse_stored_policy(row.tool_policy),
            tools=tools,
            engines=row.engines,
            prompts={talk.seq: talk.messages for talk in await trajectory_reads.list_role_calls(connection, row.id)},
            report=await reports.find_own_report(connection, row.id),
            final_state=await trajectories.find_last_state(connection, row.id),
        )


def _list_shown_tools(row: RunRow, graph: Graph, mcp_servers: McpServerRegistry | None) -> tuple[Tool, ...]:
    """Return the tools in the prompts of the run."""
    web, code = bool(row.scope.get("web")), bool(row.scope.get("code"))
    tools = create_tools(str(row.scope.get("environment", "")), web=web, code=code, custom=custom_tools_of(graph))
    return (
        *tools,
        *create_mcp_tools(select_usable(mcp_servers or McpServerRegistry(), row.scope.get("mcp", ())).values()),
    )


async def _load_quoted_texts(database: Database, tenant_id: UUID, stored_run: StoredRun) -> TextLookup:
    """Return a lookup for the current stored texts that the reports of the run may quote."""
    passages = list(dict.fromkeys(span for step in stored_run.steps for span in _list_source_spans(step)))
    spans = list(dict.fromkeys((*passages, *map(widen_span, passages))))
    quoted_texts = await read_windows(database, tenant_id, spans) if spans else ()
    texts = {span: text or "" for span, text in zip(spans, quoted_texts, strict=True)}
    return lambda span: texts.get(span, "")


def _list_source_spans(step: Step) -> Sequence[SourceSpan]:
    """Return the source spans of the passages in a tool result."""
    content = step.payload.get("content") if step.kind == "tool_result" else None
    passages = [content, *(content.get("passages") or ())] if content else []
    return [SourceSpan(UUID(str(p["text_id"])), int(p["start"]), int(p["end"])) for p in passages if "text_id" in p]
