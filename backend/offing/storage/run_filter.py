"""The filter of a list of runs, and its conditions in SQL.

A condition is written only for a filter that is used, so that the planner can choose an index that has only such runs.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from offing.core.run import TERMINAL_STATUSES, RunStatus

StatusGroup = Literal["active", "ended"]
"""`active`: queued, running, waiting or paused. `ended`: done, failed or cancelled."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Filter of a list of runs. `None` means any."""

    status: RunStatus | None = None
    graph: str | None = None
    thread_id: UUID | None = None
    kind: Literal["interactive", "rollout"] = "interactive"
    status_group: StatusGroup | None = None
    waiting_for_person: bool = False
    """Only runs with a pending input request, or that stopped at an interrupt of their graph."""
    tag: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    created_from: datetime | None = None
    """Earliest creation, inclusive."""
    created_before: datetime | None = None
    """End of the range of creation, exclusive."""
    cites: UUID | None = None
    """Only runs whose reports cite this source."""
    latest_of_thread: bool = False
    """Only the latest run of each thread: of those that are archived, and of those that are not."""


STOPPED_AT_INTERRUPT = "status = 'done' and protocol = 'langgraph' and error is null"
"""Whether a run may have stopped at an interrupt of its graph. A run that was cancelled there does not wait."""

IS_INTERRUPTED = f"""
    ({STOPPED_AT_INTERRUPT}
     and exists (select from langgraph_thread interrupted
                  where interrupted.thread_id = run.thread_id and interrupted.status = 'interrupted'
                    and interrupted.gone_at is null)
     and not exists (select from run later where later.thread_id = run.thread_id
                        and (later.created_at, later.id) > (run.created_at, run.id)))
"""
"""Whether a run stopped at an interrupt or a breakpoint of its graph, and no run of its thread followed."""

WAITS_FOR_PERSON = f"""
    run.id = any(array(
      select asking.run_id from input_request asking join run on run.id = asking.run_id
       where asking.responded_at is null and run.ended_at is null
      union all
      select last.id from langgraph_thread interrupted
       cross join lateral (select id from run where run.thread_id = interrupted.thread_id
                            order by created_at desc, id desc limit 1) last
       where interrupted.status = 'interrupted' and interrupted.gone_at is null))
    and (ended_at is null or ({STOPPED_AT_INTERRUPT}))
"""
"""The ids come first: there are few of them, and the planner would else read every run."""


CITES_SOURCE = "run.id in (select run_id from citation where citation.source_id = %(cites)s)"


IS_LATEST_OF_THREAD = """
    not exists (
      select from run later
       where later.thread_id = run.thread_id and later.kind = 'interactive'
         and (later.archived_at is null) = (run.archived_at is null)
         and (later.created_at, later.id) > (run.created_at, run.id))
"""


def list_conditions(run_filter: RunFilter, created_at: LiteralString) -> list[LiteralString]:
    """Return the conditions of a filter except those on kind and tag. `created_at` is the column that is ordered by."""
    status = run_filter.status
    ended = None if status is None else status in TERMINAL_STATUSES
    optional: tuple[tuple[bool, LiteralString], ...] = (
        (status is not None, "status = %(status)s"),
        (ended is True or run_filter.status_group == "ended", "ended_at is not null"),
        (ended is False or run_filter.status_group == "active", "ended_at is null"),
        (run_filter.graph is not None, "graph = %(graph)s"),
        (run_filter.thread_id is not None, "thread_id = %(thread)s"),
        (run_filter.waiting_for_person, WAITS_FOR_PERSON),
        (run_filter.cites is not None, CITES_SOURCE),
        (run_filter.latest_of_thread, IS_LATEST_OF_THREAD),
        (run_filter.pinned is True, "pinned_at is not null"),
        (run_filter.pinned is False, "pinned_at is null"),
        (run_filter.archived is True, "archived_at is not null"),
        (run_filter.archived is False, "archived_at is null"),
        (run_filter.created_from is not None, f"{created_at} >= %(created_from)s"),
        (run_filter.created_before is not None, f"{created_at} < %(created_before)s"),
    )
    return [condition for is_used, condition in optional if is_used]


def get_parameters(run_filter: RunFilter) -> dict[str, Any]:
    """Return the values of the conditions."""
    return {
        "status": run_filter.status,
        "graph": run_filter.graph,
        "thread": run_filter.thread_id,
        "kind": run_filter.kind,
        "tag": run_filter.tag,
        "cites": run_filter.cites,
        "created_from": run_filter.created_from,
        "created_before": run_filter.created_before,
    }
