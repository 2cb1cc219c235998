"""Rated runs: runs that people or scorers have rated, from which prompt libraries are distilled.

Only reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from offing.storage.pool import Connection
from offing.storage.training_signals import IS_NOT_REFUSED

SHORT_ANSWER = """
    coalesce((select body->'answer'->>'text' from report
               where run_id = r.id and edited_by is null order by version desc limit 1), '')
"""
"""The answer of the run itself, also if a person has edited its report since."""

LIST_RATED_ROLLOUTS = f"""
    select r.id, 'group ' || g.id, r.question, o.reward, array[]::text[], {SHORT_ANSWER}
      from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where g.state = 'complete' and o.reward is not null and o.outcome is distinct from 'infra_error'
       and not 'evaluation' = any(g.tags) and (%(until)s::timestamptz is null or g.completed_at <= %(until)s)
       and (%(graph)s::text is null or r.graph = %(graph)s) and (%(tag)s::text is null or %(tag)s = any(g.tags))
     order by r.id desc limit %(limit)s
"""

LIST_RATED_INTERACTIVE_RUNS = f"""
    with opinion as (
        select distinct on (run_id, target, sentence_id, scorer) run_id, target, value, correction
          from reward where target in ('report', 'sentence')
                        and not exists (select from report where report.run_id = reward.run_id
                                           and report.version = reward.report_version and edited_by is not null)
                        and (%(until)s::timestamptz is null or created_at <= %(until)s)
         order by run_id, target, sentence_id, scorer, version desc
    ), told as (
        select run_id, coalesce(avg(value) filter (where target = 'report'), avg(value)) as value,
               coalesce(array_agg(correction order by correction) filter (where correction <> ''), '{{}}')
                 as corrections
          from opinion group by run_id
    )
    select r.id, 'asked ' || lower(regexp_replace(btrim(r.question), '\\s+', ' ', 'g')), r.question,
           coalesce((t.value + 1) / 2, 0), t.corrections, {SHORT_ANSWER}
      from told t join run r on r.id = t.run_id
     where r.kind = 'interactive' and r.ended_at is not null and (t.value is not null or t.corrections <> '{{}}')
       and {IS_NOT_REFUSED}
       and (%(graph)s::text is null or r.graph = %(graph)s)
     order by r.id desc limit %(limit)s
"""
"""The latest rating by each person of a report or a sentence. A correction without a rating counts
as the lowest rating. Ratings of versions that a person has edited do not count, because the run did not write them.
"""


@dataclass(frozen=True, slots=True)
class RatedRun:
    """A run with its rating."""

    run_id: UUID
    comparison_group: str
    """Equal for runs that can be compared: rollouts of one group, or interactive runs with the same
    question.
    """
    question: str
    reward: float
    """From 0 to 1. People's ratings are averaged and mapped from the range -1 to 1; the reward of
    scorers is used unchanged.
    """
    corrections: tuple[str, ...]
    """Corrections by people."""
    answer: str
    """The report's short answer. Empty if there is none."""


async def list_rated_rollouts(
    connection: Connection, graph: str | None, tag: str | None, limit: int, until: datetime | None = None
) -> list[RatedRun]:
    """Return scored rollouts of complete groups, oldest first.

    If there are more than `limit`, return the newest. Evaluations are left out. `until` limits
    the result to groups that were complete by that time; `None` means all.
    """
    return await _query_rated_runs(
        connection, LIST_RATED_ROLLOUTS, {"graph": graph, "tag": tag, "limit": limit, "until": until}
    )


async def list_rated_interactive_runs(
    connection: Connection, graph: str | None, limit: int, until: datetime | None = None
) -> list[RatedRun]:
    """Return interactive runs that people rated or corrected, oldest first.

    If there are more than `limit`, return the newest. `until` uses the ratings as of that time;
    `None` means the current ones.
    """
    return await _query_rated_runs(
        connection, LIST_RATED_INTERACTIVE_RUNS, {"graph": graph, "limit": limit, "until": until}
    )


async def _query_rated_runs(connection: Connection, query: str, values: dict[str, object]) -> list[RatedRun]:
    rows: Sequence[tuple[UUID, str, str, float, list[str], str]]
    rows = await (await connection.execute(query.encode(), values)).fetchall()
    return [
        RatedRun(run, group, q, reward, tuple(corrections), answer)
        for run, group, q, reward, corrections, answer in rows[::-1]
    ]
