"""Rows of the runs that the benchmark of the web UI opens, written by SQL: one long stored run, and running ones."""

from typing import Any, LiteralString
from uuid import UUID

import psycopg

from offing.storage.migrate import LOCAL_TENANT
from tests.bench.stored_lists import ADD_RUNS

LONG_TURNS = 2048

STEPS_PER_TURN = 4

LONG_STEPS = LONG_TURNS * STEPS_PER_TURN + 2
"""With the first and the last step of the run."""

RUNNING_STEPS = 500
"""Steps of a running run before its page misses some."""

ADD_STORED_RUNS: LiteralString = ADD_RUNS.replace("n %% 5 = 0", "true")
"""`ADD_RUNS` with interactive runs only, which the lists of the web UI show."""

ADD_RUN: LiteralString = """
    insert into app.thread (id, tenant_id, title, kind) values (%(run)s, %(tenant)s, 'Harbors', 'interactive');
    insert into app.run (id, tenant_id, thread_id, kind, graph, graph_version, question, engines, tool_policy,
                         tool_policy_sha256, budget, status, stop_reason, created_at, started_at, ended_at, turns)
    values (%(run)s, %(tenant)s, %(run)s, 'interactive', 'agentflow', '1', 'How do harbors keep ships from silting?',
            '{}', '{}', '', '{"max_turns": 2048}', %(status)s, case when %(status)s = 'done' then 'turn_limit' end,
            now() - interval '2 hours', now() - interval '2 hours', case when %(status)s = 'done' then now() end,
            %(turns)s)
"""

ADD_STEPS: LiteralString = """
    with added as (
      insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn, payload)
      select %(run)s, n, %(tenant)s, 1,
             case when n = 1 then 'queued' when n = %(end)s then 'ended'
                  else (array['plan', 'tool_call', 'tool_result', 'memory'])[1 + n %% 4] end,
             case when n = 1 then 'queued' when n = %(end)s then 'ended'
                  else (array['plan', 'search', 'read', 'memory'])[1 + n %% 4] end,
             'Step ' || n || ': dredging records of the outer harbor',
             case when n %% 3 > 0 then 'The channel was dredged to ' || n || ' cm between two surveys' else '' end,
             n %% 97 > 0, 12 + n %% 900, n %% 700, (n + 2) / 4, '{"text": "Records of the harbor office"}'
        from generate_series(%(first)s::bigint, %(last)s) as n)
    update app.run set next_seq = %(last)s + 1 where id = %(run)s
"""


def _connect(owner_url: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(owner_url, autocommit=True, cursor_factory=psycopg.ClientCursor)


def add_stored_runs(owner_url: str, runs: int) -> None:
    """Write this many ended runs of five steps, and let Postgres collect its statistics."""
    with _connect(owner_url) as owner:
        for statement in filter(str.strip, ADD_STORED_RUNS.split(";\n")):
            owner.execute(statement, {"tenant": LOCAL_TENANT, "runs": runs})
        owner.execute("vacuum analyze")


def add_run(owner_url: str, run_id: UUID, steps: int, *, ended: bool) -> None:
    """Write a run with this many steps. One that has not ended is running, although no worker works on it."""
    values = {"run": run_id, "tenant": LOCAL_TENANT, "status": "done" if ended else "running", "turns": steps // 4}
    with _connect(owner_url) as owner:
        for statement in ADD_RUN.split(";\n"):
            owner.execute(statement, values)
    add_steps(owner_url, run_id, 1, steps, ended=ended)


def add_steps(owner_url: str, run_id: UUID, first: int, last: int, *, ended: bool = False) -> None:
    """Append the steps from `first` to `last`, both included."""
    values = {"run": run_id, "tenant": LOCAL_TENANT, "first": first, "last": last, "end": last if ended else 0}
    with _connect(owner_url) as owner:
        owner.execute(ADD_STEPS, values)
