"""Runs that were judged, by people or by scorers, as rows: what a prompt library is made from. Reads only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from offing.storage.pool import Connection

ANSWER = "coalesce((select body->'answer'->>'text' from report where run_id = r.id order by version desc limit 1), '')"

COLLECTED = f"""
    select r.id, 'group ' || g.id, r.question, o.reward, array[]::text[], {ANSWER}
      from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
     where g.state = 'complete' and o.reward is not null and o.outcome is distinct from 'infra_error'
       and not 'evaluation' = any(g.tags) and (%(until)s::timestamptz is null or g.completed_at <= %(until)s)
       and (%(graph)s::text is null or r.graph = %(graph)s) and (%(tag)s::text is null or %(tag)s = any(g.tags))
     order by r.id desc limit %(limit)s
"""

ASKED = f"""
    with opinion as (
        select distinct on (run_id, target, claim, scorer) run_id, target, value, correction
          from reward where target in ('report', 'claim')
                        and (%(until)s::timestamptz is null or created_at <= %(until)s)
         order by run_id, target, claim, scorer, version desc
    ), told as (
        select run_id, coalesce(avg(value) filter (where target = 'report'), avg(value)) as value,
               coalesce(array_agg(correction order by correction) filter (where correction <> ''), '{{}}')
                 as corrections
          from opinion group by run_id
    )
    select r.id, 'asked ' || lower(regexp_replace(btrim(r.question), '\\s+', ' ', 'g')), r.question,
           coalesce((t.value + 1) / 2, 0), t.corrections, {ANSWER}
      from told t join run r on r.id = t.run_id
     where r.kind = 'ask' and r.ended_at is not null and (t.value is not null or t.corrections <> '{{}}')
       and (%(graph)s::text is null or r.graph = %(graph)s)
     order by r.id desc limit %(limit)s
"""
"""The latest opinion of each person on a report or a sentence. Only corrected, never rated: it was not good."""


@dataclass(frozen=True, slots=True)
class RatedRun:
    """A run that was judged."""

    run: UUID
    group: str
    """The same for runs that can be compared: rollouts of a group, or people's runs on the same question."""
    question: str
    reward: float
    """Of people's opinions 0 to 1, from the mean of -1 to 1; of scorers as they gave it."""
    corrections: tuple[str, ...]
    """What people wrote."""
    answer: str
    """The report's short answer. Empty: there is none."""


async def collected(
    connection: Connection, graph: str | None, tag: str | None, limit: int, until: datetime | None = None
) -> list[RatedRun]:
    """Scored rollouts of whole groups, oldest first, the newest where there are more; evaluations are never among
    them. `until`: groups that were complete by then. None: all."""
    return await _read(connection, COLLECTED, {"graph": graph, "tag": tag, "limit": limit, "until": until})


async def asked(connection: Connection, graph: str | None, limit: int, until: datetime | None = None) -> list[RatedRun]:
    """People's runs that somebody rated or corrected, oldest first, the newest where there are more. `until`: as they
    were judged by then. None: as they are."""
    return await _read(connection, ASKED, {"graph": graph, "limit": limit, "until": until})


async def _read(connection: Connection, query: str, values: dict[str, object]) -> list[RatedRun]:
    rows: Sequence[tuple[UUID, str, str, float, list[str], str]]
    rows = await (await connection.execute(query.encode(), values)).fetchall()
    return [RatedRun(run, group, q, reward, tuple(said), answer) for run, group, q, reward, said, answer in rows[::-1]]
