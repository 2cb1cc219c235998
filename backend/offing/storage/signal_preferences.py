"""Preference pairs from what people said about runs: ratings, and corrected answers.

Only runs that may be learned from are used, and none that is held out for evaluation: neither the run of a held-out
task nor one with the same question.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.report import Report
from offing.core.scoring import strip_markup
from offing.core.training_signal import SignalKind, TextOrigin, TrainingSignal
from offing.core.trajectory_records import PreferencePair, PreferenceSource
from offing.storage.pool import Connection
from offing.storage.reports_of_runs import list_own_reports
from offing.storage.training_signals import list_signals
from offing.storage.trajectory_reads import list_role_calls_by_run

IS_USABLE = """
    app.may_learn_from(r.id)
    and r.id not in (select o.run_id from task_origin o join task k on k.id = o.task_id
                      where o.is_current and k.split = 'held_out')
    and r.question not in (select k.question from task_origin o join task k on k.id = o.task_id
                            where o.is_current and k.split = 'held_out')
"""
"""Condition on a run `r`."""

LIST_RATED_PROMPTS = f"""
    with latest as (
      select distinct on (w.run_id, w.scorer) w.id, w.run_id, w.value
        from reward w
       where w.target = 'report' and w.scorer like 'person:%%'
         and not exists (select from report e where e.run_id = w.run_id and e.version = w.report_version
                                                and e.edited_by is not null)
         and exists (select from reward where run_id = any(%(runs)s) and target = 'report' and scorer like 'person:%%')
       order by w.run_id, w.scorer, w.version desc),
    rated as (
      select r.id as run_id, r.forked_at_seq, avg(l.value)::float8 as rating, array_agg(l.id::text) as ratings
        from latest l join run r on r.id = l.run_id
       where l.value is not null and r.kind = %(kind)s and r.ended_at is not null and {IS_USABLE}
       group by r.id),
    said as (
      select c.run_id, c.seq, c.role, c.state_key, c.completion, d.rating, d.ratings
        from rated d join role_call c on c.run_id = d.run_id
       where c.seq > coalesce(d.forked_at_seq, 0) and c.state_key <> '' and c.completion <> ''
         and c.trainable <> 'none' and c.quarantine = '' and c.is_accepted
         and (%(roles)s::text[] is null or c.role = any(%(roles)s))),
    preferred as (
      select distinct on (role, state_key) role, first_value(run_id) over best as chosen_run,
             first_value(seq) over best as seq, first_value(completion) over best as chosen,
             first_value(completion) over worst as rejected, first_value(rating) over best as chosen_rating,
             first_value(rating) over worst as rejected_rating, first_value(run_id) over worst as rejected_run,
             first_value(ratings) over best || first_value(ratings) over worst as ratings
        from said
      window best as (partition by role, state_key order by rating desc, run_id, seq),
             worst as (partition by role, state_key order by rating, run_id, seq))
    select role, chosen_run, seq, chosen, rejected, chosen_rating, rejected_rating, rejected_run, ratings
      from preferred
     where chosen_run = any(%(runs)s) and chosen <> rejected and chosen_rating > rejected_rating
     order by chosen_run, seq
"""
"""For each prompt that rated runs share: the answer of the best rated run and that of the worst, with the ids of the
ratings. A rating of an edited version is about the words of its editor. What a fork copied is not its own.
"""

LIST_CORRECTED_ANSWERS = f"""
    select distinct on (a.run_id) a.run_id, r.question, a.id::text, a.answer, a.text_origin, a.given_by, a.created_at,
           a.report_version
      from answer_correction a join run r on r.id = a.run_id
     where a.run_id = any(%(runs)s) and {IS_USABLE}
       and not exists (select from run e where e.thread_id = r.thread_id
                                            and (e.created_at, e.id) < (r.created_at, r.id))
     order by a.run_id, a.created_at desc, a.id desc
"""
"""The newest correction of each run. A question that continues a thread does not stand alone."""


async def list_rating_preferences(
    connection: Connection, kind: str, run_ids: Sequence[UUID], roles: Sequence[str] = ()
) -> list[PreferencePair]:
    """Return a pair for each prompt whose best rated answer is by one of these runs, and whose worst is rated lower.

    Runs of this kind are compared, whether among `run_ids` or not. No roles means all of them.
    """
    values = {"runs": list(run_ids), "kind": kind, "roles": list(roles) or None}
    rows = await (await connection.execute(LIST_RATED_PROMPTS, values)).fetchall()
    if not rows:
        return []
    calls = await list_role_calls_by_run(connection, list({row[1] for row in rows}))
    prompts = {(run, call.seq): call.messages for run, own in calls.items() for call in own}
    signals = await list_signals(connection, list({run for row in rows for run in (row[1], row[7])}))
    return [_build_rating_pair(row, prompts[row[1], row[2]], signals) for row in rows]


def _build_rating_pair(
    row: Sequence[Any], messages: tuple[Message, ...], signals: Sequence[TrainingSignal]
) -> PreferencePair:
    role, chosen_run, _, chosen, rejected, chosen_rating, rejected_rating, rejected_run, ratings = row
    return PreferencePair(
        PreferenceSource.RATING, None, role, messages, chosen, rejected, chosen_rating, rejected_rating,
        chosen_run, rejected_run,
        tuple(one for one in signals if one.kind is SignalKind.REPORT_RATING and one.id in ratings),
    )  # fmt: skip


async def list_correction_preferences(connection: Connection, run_ids: Sequence[UUID]) -> list[PreferencePair]:
    """Return a pair for each of these runs whose answer a person corrected: the right answer, and that of the run.

    Runs that gave no answer, or the same one, are left out.
    """
    rows = await (await connection.execute(LIST_CORRECTED_ANSWERS, {"runs": list(run_ids)})).fetchall()
    reports = await list_own_reports(connection, [row[0] for row in rows])
    pairs = (_build_correction_pair(row, reports) for row in rows)
    return [pair for pair in pairs if pair.rejected and pair.rejected != pair.chosen]


def _build_correction_pair(row: Sequence[Any], reports: Mapping[UUID, Report]) -> PreferencePair:
    run, question, id, answer, origin, given_by, at, version = row
    report = reports.get(run)
    rejected = strip_markup(report.answer.text) if report is not None and report.answer is not None else ""
    signal = TrainingSignal(
        SignalKind.ANSWER_CORRECTION, id, run, given_by, at, version, None, None, answer, TextOrigin(origin)
    )
    return PreferencePair(
        PreferenceSource.CORRECTION, None, "", (Message("user", (question,)),), answer, rejected, None, None,
        None, run, (signal,),
    )  # fmt: skip
