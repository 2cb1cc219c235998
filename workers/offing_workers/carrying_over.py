"""A run whose version of its graph is gone goes on in the one that is here, if that says how. The only home of that.

Everything happens in the caller's transaction, so that a run is wholly in one version or in the other.
"""

from typing import Any

import structlog

from offing.core.errors import Fenced, StateTooLarge
from offing.core.run import Fence
from offing.core.step import StepDraft, StepKind, shortened
from offing.core.usage import UsageDelta
from offing.sdk import Graph, RunView
from offing.storage import checkpoint_upgrade, steps
from offing.storage.plain_state import serializer
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.telemetry.redaction import redact

TITLE = "Goes on in another version of its graph"

log = structlog.get_logger()


async def carried_over(connection: Connection, fence: Fence, term: float, row: RunRow, graph: Graph) -> str:
    """Move a held run to this version. Empty: done. Otherwise why it cannot be, and nothing has changed."""
    if graph.plain is not None or row.kind != "ask" or row.durability != "sync":
        return "only what people asked of a graph with an own state is carried over"
    stored = await checkpoint_upgrade.last(connection, fence)
    if stored is not None:
        if why := _standing(stored, graph):
            return why
        run = RunView(row.id, row.question, (), row.budget, row.seed)
        state = upgraded(graph, run, row.graph_version, stored.state)
        if isinstance(state, str):
            return state
        try:
            turn = state.get(graph.turn_key) if graph.turn_key else None
            await checkpoint_upgrade.rewrite(connection, fence, stored, state, turn)
        except StateTooLarge as error:
            return str(error)
    await checkpoint_upgrade.repin(connection, fence, graph.version)
    payload = {"after": "upgrade", "from": row.graph_version, "to": graph.version}
    detail = f"{row.graph_version[:12]} to {graph.version[:12]}"
    await steps.append(
        connection, fence, term, [StepDraft(StepKind.RESUMED, TITLE, payload, detail=detail)], UsageDelta()
    )
    return ""


def _standing(stored: checkpoint_upgrade.Stored, graph: Graph) -> str:
    """Why the run cannot go on from where it stands. Empty: it can."""
    if stored.had_effect:
        return "a tool with an effect was called after its last checkpoint"
    if stored.elsewhere:
        return f"its channel {stored.elsewhere[0]!r} is rebuilt from earlier checkpoints, which stay as they are"
    gone = sorted(stored.following - set(graph.build().nodes))
    return f"its next node {gone[0]!r} is not in the new version" if gone else ""


def upgraded(graph: Graph, run: RunView, version: str, state: dict[str, Any]) -> dict[str, Any] | str:
    """The state of a run of another version as this one has it, or why there is none."""
    assert graph.upgrade is not None
    try:
        wanted = set(graph.start(run))
        found: Any = graph.upgrade(version, state)
        if found is None:
            return "its upgrade has no use for that state"
        serde = serializer()
        plain = serde.loads_typed(serde.dumps_typed(dict(found)))
    except Fenced:
        raise
    except Exception as error:  # an author's code may raise anything, and the run is not to end of it
        log.warning("an upgrade failed", graph=graph.name, run=str(run.id), reason=redact(str(error)))
        return shortened(redact(f"its upgrade raised {type(error).__name__}: {error}"))
    if set(plain) != wanted:
        return f"its upgrade gave other keys: {', '.join(sorted(set(plain) ^ wanted))}"
    return plain
