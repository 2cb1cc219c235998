"""Replay a stored run: its record is read from Postgres, and nothing is written."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from langgraph.checkpoint.memory import InMemorySaver

from offing.core.citation import TextOf
from offing.core.errors import Conflict, InvalidInput
from offing.core.policy import policy_of
from offing.core.run import RunStatus
from offing.core.step import Step
from offing.core.tool import Span
from offing.kernel.replay import Recording, Replayed, replay
from offing.mcp.catalogue import Catalogue
from offing.sdk import Graph, RunView
from offing.services.graphs import at_version, own_tools
from offing.services.library import texts_of
from offing.services.mcp_results import usable
from offing.storage import reports, runs, steps, stretches, trajectories
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from offing.tools import registry
from offing.tools.mcp_tools import mcp_tools
from offing.tools.tool import Tool

MAX_STEPS = 10_000_000


async def replayed(
    database: Database, tenant: UUID, run: UUID, graphs: Mapping[str, Graph], servers: Catalogue | None = None
) -> Replayed:
    """Replay a run that has ended.

    Raises NotFound, InvalidInput when this installation has not the run's graph or the run was upgraded, and Conflict
    while the run continues.
    `servers`: MCP servers whose tools runs were shown; none is asked.
    """
    async with database.transaction(tenant) as connection:
        row = await runs.by_id(connection, run)
    if not row.terminal:
        raise Conflict("The run has not ended.", "Wait for it, or cancel it first.")
    graph = at_version(graphs, row.graph, row.graph_version)
    if graph is None:
        wanted = f"run {run} was made by {row.graph} {row.graph_version[:12]}, which is not installed here"
        raise InvalidInput("RUN", wanted, "Replay it where that version of the graph is.")
    recording = await _recording(database, tenant, row, _tools(row, graph, servers))
    _check_one_version(recording)
    text_of = await _quoted(database, tenant, recording)
    return await replay(graph, recording, text_of, None, InMemorySaver)


def _check_one_version(recording: Recording) -> None:
    """Raise InvalidInput for a run that was upgraded: no version of its graph asks for all that is on record."""
    for step in recording.steps:
        if step.payload.get("after") == "upgrade":
            why = f"run {recording.run.id} went over to another version of its graph at step {step.seq}"
            raise InvalidInput("RUN", why, "Replay a run that one version has executed from its beginning to its end.")


async def _recording(database: Database, tenant: UUID, row: RunRow, tools: Sequence[Tool]) -> Recording:
    async with database.transaction(tenant) as connection:
        return Recording(
            run=RunView(
                row.id, row.question, await trajectories.earlier_answers(connection, row.id), row.budget, row.seed
            ),
            steps=tuple(await steps.after(connection, row.id, 0, MAX_STEPS)),
            stop_reason=row.stop_reason or "",
            done=row.status is RunStatus.DONE,
            policy=policy_of(row.policy),
            tools=tools,
            engines=row.engines,
            prompts={talk.seq: talk.messages for talk in await stretches.talks(connection, row.id)},
            report=await reports.latest(connection, row.id),
            state=await trajectories.last_state(connection, row.id),
        )


def _tools(row: RunRow, graph: Graph, servers: Catalogue | None) -> tuple[Tool, ...]:
    """The tools that the run's prompts showed."""
    web, code = bool(row.scope.get("web")), bool(row.scope.get("code"))
    known = registry(str(row.scope.get("world", "")), web=web, code=code, own=own_tools(graph))
    return (*known, *mcp_tools(usable(servers or Catalogue(), row.scope.get("mcp", ())).values()))


async def _quoted(database: Database, tenant: UUID, recording: Recording) -> TextOf:
    """The stored texts that the run's reports may quote, read now."""
    spans = list(dict.fromkeys(span for step in recording.steps for span in _spans(step)))
    found = await texts_of(database, tenant, spans) if spans else ()
    texts = {span: text or "" for span, text in zip(spans, found, strict=True)}
    return lambda span: texts.get(span, "")


def _spans(step: Step) -> Sequence[Span]:
    """Passages that an observation retrieved."""
    content = step.payload.get("content") if step.kind == "tool" else None
    passages = [content, *(content.get("passages") or ())] if content else []
    return [Span(UUID(str(p["artefact"])), int(p["start"]), int(p["end"])) for p in passages if "artefact" in p]
