"""Times of the lists of an installation that has stored much: 500,000 runs with 2.3 million steps by default.

    .venv/bin/python -m tests.bench.stored_lists [--runs 500000]

The rows are written by SQL, four of five runs are rollouts in groups of eight. Each list is read through its service as
the role of the application, 20 times after one reading that warms the caches. HTTP, validation and JSON are apart.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import LiteralString

import psycopg

from offing.core.run import RunStatus
from offing.core.trajectory import Outcome
from offing.services import rollouts, run_lists, tasks, threads
from offing.services.run_lists import ListForm
from offing.services.run_search import index_queued_runs
from offing.storage.metric_queries import count_ended_runs, list_tenant_metrics
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rollout_batches import GroupFilter
from offing.storage.rollouts import RolloutFilter
from offing.storage.run_filter import RunFilter
from offing.storage.runs import list_ids_with_suffix
from tests.bench.servers import open_migrated_servers

READINGS = 20

GROUP_SIZE = 8

BATCHES = 100

Read = Callable[[Database], Awaitable[object]]

ADD_RUNS: LiteralString = """
    insert into app.thread (id, tenant_id, title, kind)
    select md5('t' || n)::uuid, %(tenant)s, 'Question ' || n, case when n %% 5 = 0 then 'interactive' else 'rollout' end
      from generate_series(1, %(runs)s) n;
    insert into app.run (id, tenant_id, thread_id, kind, graph, graph_version, question, engines, tool_policy,
                         tool_policy_sha256, budget, status, created_at, started_at, ended_at, archived_at, next_seq)
    select md5('r' || n)::uuid, %(tenant)s, md5('t' || n)::uuid,
           case when n %% 5 = 0 then 'interactive' else 'rollout' end,
           (array['agentflow', 'iterresearch', 'memact', 'hiper'])[1 + n %% 4], '1',
           'How does harbor ' || n || ' keep ships from silting?', '{}', '{}', '', '{"max_turns": 3}',
           case when n %% 5000 = 0 then 'queued' when n %% 100 = 0 then 'failed' else 'done' end,
           now() - n * interval '1 minute', now() - n * interval '1 minute' + interval '50 ms',
           case when n %% 5000 > 0 then now() - n * interval '1 minute' + interval '1 second' end,
           case when n %% 10 = 0 then now() end, 6
      from generate_series(1, %(runs)s) n;
    insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, ok, ms, payload)
    select r.id, s, %(tenant)s, 1, (array['queued', 'plan', 'tool_result', 'report', 'ended'])[s],
           (array['queued', 'planner', 'search_library', 'generator', 'ended'])[s], 'Step ' || s, true, 12, '{}'
      from app.run r cross join generate_series(1, 5) s where s < 5 or hashtext(r.id::text) %% 5 < 3;
    insert into app.role_call (run_id, seq, tenant_id, role, engine, model, prompt, prompt_tokens, completion_tokens,
                               cost_usd, sampling, trainable)
    select id, 2, %(tenant)s, 'planner', 'litellm', 'model-' || hashtext(id::text) %% 3, '[]', 900, 40, 0.001,
           '{"first_text_ms": 350}', 'sft' from app.run;
    insert into app.run_tag (run_id, tag, tenant_id, position, run_created_at)
    select id, 'tag' || substr(id::text, 36), tenant_id, 1, created_at from app.run where kind = 'interactive';
    insert into app.input_request (run_id, seq, tenant_id, kind)
    select id, 2, tenant_id, 'free_text' from app.run where ended_at is null;
"""

ADD_ROLLOUTS: LiteralString = """
    insert into app.task (id, tenant_id, dataset, question, content_sha256)
    select md5('k' || n)::uuid, %(tenant)s, 'd' || n %% 10, 'Question ' || n, n::text
      from generate_series(1, %(tasks)s) n;
    insert into app.rollout_batch (id, tenant_id, name, request, group_count)
    select md5('b' || n)::uuid, %(tenant)s, 'batch ' || n, '{}', %(tasks)s / %(batches)s
      from generate_series(1, %(batches)s) n;
    insert into app.rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, scorers, size, seed,
                                   max_attempts, state)
    select md5('g' || n)::uuid, %(tenant)s, md5('b' || 1 + n %% %(batches)s)::uuid, md5('k' || n)::uuid, 'agentflow',
           '1', '{}', '[]', %(size)s, 0, 2, 'open' from generate_series(1, %(tasks)s) n;
    insert into app.rollout (run_id, group_id, tenant_id, member, outcome, reward, finalized_at)
    select id, md5('g' || 1 + (nth / %(size)s) %% %(tasks)s)::uuid, %(tenant)s, nth %% %(size)s, 'answered',
           nth %% 2, ended_at
      from (select id, ended_at, row_number() over () - 1 as nth from app.run where kind = 'rollout') r
     where nth / %(size)s < %(tasks)s;
    update app.rollout_group set state = 'complete', completed_at = now()
     where id not in (select g.group_id from app.rollout g join app.run r on r.id = g.run_id where r.ended_at is null);
    insert into app.uncounted_run (run_id, tenant_id) select id, tenant_id from app.run where ended_at is not null;
"""

LISTS: dict[str, Read] = {
    "runs": lambda d: run_lists.list_runs(d, LOCAL_TENANT, RunFilter(archived=False), None, None, 50),
    "threads by their latest run, pinned first": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(archived=False, latest_of_thread=True), None, None, 50, ListForm(pinned_first=5)
    ),
    "runs, oldest first": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(archived=False), None, None, 50, ListForm("oldest")
    ),
    "runs by cost": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(archived=False), None, None, 50, ListForm("cost")
    ),
    "failed runs by duration": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(status=RunStatus.FAILED), None, None, 50, ListForm("duration")
    ),
    "counts beside the filters": lambda d: run_lists.count_runs(d, LOCAL_TENANT),
    "runs that failed": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(status=RunStatus.FAILED), None, None, 50
    ),
    "runs that wait for a person": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(waiting_for_person=True), None, None, 50
    ),
    "runs of a graph": lambda d: run_lists.list_runs(d, LOCAL_TENANT, RunFilter(graph="hiper"), None, None, 50),
    "runs with a tag": lambda d: run_lists.list_runs(d, LOCAL_TENANT, RunFilter(tag="tag7"), None, None, 50),
    "runs with frequent words, best first": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(archived=False), "harbor ships", None, 50
    ),
    "runs with frequent words, newest first": lambda d: run_lists.list_runs(
        d, LOCAL_TENANT, RunFilter(), "harbor ships", None, 50, ListForm("newest")
    ),
    "runs with a rare word": lambda d: run_lists.list_runs(d, LOCAL_TENANT, RunFilter(), "harbor 4000 ", None, 50),
    "a run by the end of its id": lambda d: _in_transaction(d, lambda c: list_ids_with_suffix(c, "2f27c6")),
    "rollout batches": lambda d: rollouts.list_batches(d, LOCAL_TENANT, None, 50),
    "rollout groups": lambda d: rollouts.list_groups(d, LOCAL_TENANT, GroupFilter(), None, 50),
    "rollouts": lambda d: rollouts.list_rollouts(d, LOCAL_TENANT, RolloutFilter(), None, 50),
    "rollouts of an outcome that is rare": lambda d: rollouts.list_rollouts(
        d, LOCAL_TENANT, RolloutFilter(outcome=Outcome.INFRA_ERROR), None, 50
    ),
    "threads": lambda d: threads.list_threads(d, LOCAL_TENANT, None, 50),
    "tasks": lambda d: tasks.list_tasks(d, LOCAL_TENANT, None, None, 50),
    "metrics": lambda d: _in_transaction(d, list_tenant_metrics),
}


async def _in_transaction(database: Database, read: Callable[[psycopg.AsyncConnection], Awaitable[object]]) -> object:
    async with database.transaction(LOCAL_TENANT) as connection:
        return await read(connection)


def fill(owner_url: str, runs: int) -> None:
    """Write the rows of this many runs, and let Postgres collect its statistics."""
    tasks_count = runs * 4 // 5 // GROUP_SIZE
    values = {"tenant": LOCAL_TENANT, "runs": runs, "tasks": tasks_count, "batches": BATCHES, "size": GROUP_SIZE}
    with psycopg.connect(owner_url, autocommit=True, cursor_factory=psycopg.ClientCursor) as owner:
        for statements in (ADD_RUNS, ADD_ROLLOUTS):
            for statement in statements.split(";\n"):
                if statement.strip():
                    owner.execute(statement, values)
        owner.execute("vacuum analyze")


async def time_lists(database: Database) -> None:
    for name, read in LISTS.items():
        await read(database)
        seconds: list[float] = []
        for _ in range(READINGS):
            began = time.perf_counter()
            await read(database)
            seconds.append(time.perf_counter() - began)
        median, longest = statistics.median(seconds) * 1000, max(seconds) * 1000
        print(f"{name:40} median {median:8.1f} ms   longest {longest:8.1f} ms", flush=True)


async def run(app_url: str) -> None:
    async with Database(app_url, max_connections=2) as database:
        began = time.perf_counter()
        counted = 0
        while count := await count_ended_runs(database, 500):
            counted += count
        print(f"{counted:,} ended runs were counted in {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        indexed = await index_queued_runs(database, LOCAL_TENANT, 1_000_000)
        print(f"{indexed:,} runs were indexed in {time.perf_counter() - began:.1f} s")
        await time_lists(database)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500_000)
    arguments = parser.parse_args()
    with open_migrated_servers() as (servers, _):
        began = time.perf_counter()
        fill(servers.owner_url, arguments.runs)
        print(f"{arguments.runs:,} runs, written in {time.perf_counter() - began:.0f} s")
        asyncio.run(run(servers.app_url))


if __name__ == "__main__":
    main()
