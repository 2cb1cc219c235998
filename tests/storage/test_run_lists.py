"""Lists of ten thousand runs read little more than they return, and searches stay within a tenant."""

import re
import time
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.run import RunStatus
from offing.library.word_query import parse_word_query
from offing.services import run_lists, run_search_pages
from offing.services.run_search import MAX_RUNS_PER_BATCH, index_all_tenants, index_queued_runs, render_tsquery
from offing.storage import run_labels, run_search, run_summaries
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.run_filter import RunFilter
from offing.storage.run_search import RunWords
from tests.storage.builders import a_run, stored

RUNS = 10_000

CITED = UUID(int=7)
"""A source that a few of the runs cite."""

ADD_RUNS = """
    insert into app.thread (id, tenant_id, title)
    select lpad(to_hex(n), 32, '0')::uuid, %(tenant)s, 't' from generate_series(1, %(count)s) n;
    insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                         tool_policy_sha256, budget, status, created_at, ended_at, archived_at, pinned_at)
    select lpad(to_hex(n), 32, '0')::uuid, %(tenant)s, lpad(to_hex(n), 32, '0')::uuid,
           case when n %% 50 = 0 then 'rare' else 'counting' end, '1', 'Why is sea ' || n || ' salt?', '{}', '{}', '',
           '{"max_turns": 3}',
           case when n %% 500 = 0 then 'queued' when n %% 100 = 0 then 'failed' else 'done' end,
           now() - n * interval '1 minute', case when n %% 500 > 0 then now() end,
           case when n %% 2 = 0 then now() end, case when n %% 400 = 1 then now() end
      from generate_series(1, %(count)s) n;
    insert into app.run_tag (run_id, tag, tenant_id, position, run_created_at)
    select id, 'tag' || substr(id::text, 36), tenant_id, 1, created_at from app.run;
    insert into app.report (run_id, version, tenant_id, seq, status, stop_reason, body)
    select id, 1, tenant_id, 1, 'complete', 'answered', '{"title": "", "answer": null, "sections": []}' from app.run;
    insert into app.citation (run_id, report_version, number, tenant_id, source_id, start_char, end_char, quote, title)
    select id, 1, 1, tenant_id, lpad(case when right(id::text, 2) = '11' then '7' else '8' end, 32, '0')::uuid, 0, 1,
           'x', 'X' from app.run;
    insert into app.input_request (run_id, seq, tenant_id, kind, responded_at, response, responder)
    select id, 1, tenant_id, 'free_text', now(), '{}', 'person' from app.run;
    insert into app.input_request (run_id, seq, tenant_id, kind)
    select id, 2, tenant_id, 'free_text' from app.run where ended_at is null;
    update app.run_search s
       set words = array_to_tsvector(array[%(prefix)s || 'sea', %(prefix)s || 'salt',
             %(prefix)s || 'x' || translate(('x' || right(run_id::text, 8))::bit(32)::int::text, '0123456789',
                                            'bcdfghjklm')]),
           head = replace('''Xsea'':1B ''Xsalt'':1B', 'X', %(prefix)s)::tsvector;
    delete from app.run_search_queue;
    analyze;
"""


@pytest.fixture
def crowd(owner_url: str) -> None:
    """Ten thousand runs: a half archived, a few active, failed, pinned, or of a rare graph."""
    prefix = f"{LOCAL_TENANT.hex[-8:]}:"
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for statement in ADD_RUNS.split(";\n"):
            if statement.strip():
                owner.execute(statement.encode(), {"tenant": LOCAL_TENANT, "count": RUNS, "prefix": prefix})


class Watched:
    """A connection that explains each statement that lists runs before it executes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plans: list[str] = []

    async def execute(self, query: Any, parameters: Any = None, **more: Any) -> Any:
        explain = f"explain (analyze, buffers, costs off, timing off, summary off) {query}"
        rows = await (await self._connection.execute(explain.encode(), parameters, prepare=False)).fetchall()
        self.plans.append("\n".join(line for (line,) in rows))
        return await self._connection.execute(query, parameters, **more)


FILTERS = {
    "not archived": (RunFilter(archived=False), "run_not_archived"),
    "archived": (RunFilter(archived=True), "run_archived"),
    "all": (RunFilter(), "run_interactive"),
    "pinned": (RunFilter(pinned=True), "run_pinned"),
    "active": (RunFilter(status_group="active"), "run_not_ended"),
    "failed": (RunFilter(status=RunStatus.FAILED), "run_ended_by_status"),
    "graph": (RunFilter(graph="rare"), "run_by_graph"),
    "tag": (RunFilter(tag="tag7"), "run_tag_by_time"),
    "citing": (RunFilter(cites=CITED), "citation_by_source"),
    "waiting": (RunFilter(waiting_for_person=True), "input_request_pending"),
}


@pytest.mark.timeout(300)
async def test_each_list_of_ten_thousand_runs_uses_the_index_that_has_its_order(crowd: None, pool: Database) -> None:
    for name, (one, index) in FILTERS.items():
        async with pool.transaction(LOCAL_TENANT) as connection:
            watched = Watched(connection)
            first: Any = await run_summaries.list_runs(watched, one, None, 10)  # type: ignore[arg-type]
            key = first[-1].run.created_at, first[-1].run.id
            second: Any = await run_summaries.list_runs(watched, one, key, 10)  # type: ignore[arg-type]
        assert len(first) == len(second) == 10, name
        assert [r.run.created_at for r in first + second] == sorted(
            (r.run.created_at for r in first + second), reverse=True
        )
        for plan in watched.plans:
            assert index in plan, (name, plan)
            assert not re.search(r"Seq Scan on (run|run_tag|input_request)\b", plan), (name, plan)
            read = re.search(r"Buffers: shared hit=(\d+)", plan)  # of the whole statement
            assert read is not None
            assert int(read[1]) < 500, (name, plan)


@pytest.mark.timeout(300)
async def test_a_search_of_ten_thousand_runs_reads_what_it_returns(crowd: None, pool: Database, owner_url: str) -> None:
    frequent = await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(archived=False), "sea salt", None, 20)
    assert (len(frequent.runs), frequent.unindexed_count) == (20, 0)
    began = time.perf_counter()
    following = await run_lists.list_runs(
        pool, LOCAL_TENANT, RunFilter(archived=False), "sea salt", frequent.next_cursor, 20
    )
    rare = await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "sea xmmm ", None, 20)
    seconds = time.perf_counter() - began
    assert not {r.run.id for r in frequent.runs} & {r.run.id for r in following.runs}
    assert [r.run.question for r in rare.runs] == ["Why is sea 999 salt?"]
    assert seconds < 5  # 0.05 on an idle machine
    for words, index in (("sea xmmm ", "run_search_by_word"), ("sea salt ", "run_search_by_time")):
        plan = explain_search(owner_url, render_tsquery(parse_word_query(words), LOCAL_TENANT))
        assert index in plan, plan


def explain_search(owner_url: str, query: str) -> str:
    """The plan of the statement in the function, with its settings and for these words."""
    with psycopg.connect(owner_url) as owner:
        row = owner.execute("select prosrc from pg_proc where proname = 'find_runs_by_words'").fetchone()
        assert row is not None
        statement = re.search(r"'(select.*limit \$5)', case", row[0], re.DOTALL)
        assert statement is not None
        owner.execute("set enable_seqscan = off")
        values = (
            f"'{LOCAL_TENANT}'",
            f"'{query.replace(chr(39), chr(39) * 2)}'::tsquery",
            "'infinity'",
            "'f0000000-0000-0000-0000-000000000000'",
            "500",
            "null::tsquery",
        )
        template = statement[1].replace("''", "'").replace("%I", "words")
        explained = re.sub(r"\$(\d)", lambda number: values[int(number[1]) - 1], template)
        return "\n".join(line for (line,) in owner.execute(f"explain {explained}".encode()))


async def test_a_search_that_filters_most_of_what_it_finds_reads_window_after_window(
    crowd: None, pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search_pages, "MATCHES_PER_WINDOW", 50)
    only = RunFilter(graph="rare")
    page = await run_lists.list_runs(pool, LOCAL_TENANT, only, "salt", None, 20)
    # Each window has one run of the graph, and a page takes at most 20 windows.
    assert len(page.runs) == 20
    assert page.next_cursor is not None
    rest, cursor = list(page.runs), page.next_cursor
    while cursor is not None:
        page = await run_lists.list_runs(pool, LOCAL_TENANT, only, "salt", cursor, 20)
        rest, cursor = rest + page.runs, page.next_cursor
    assert len(rest) == len({r.run.id for r in rest}) == RUNS // 50


async def test_runs_are_indexed_in_batches_and_only_once(pool: Database) -> None:
    count = MAX_RUNS_PER_BATCH + 5
    for number in range(count):
        await stored(pool, LOCAL_TENANT, a_run(question=f"Why is sea {number} salt?"))
    assert await index_queued_runs(pool, LOCAL_TENANT, 3) == 3
    assert await index_all_tenants(pool, 100) == count - 3
    assert await index_all_tenants(pool, 100) == 0


async def test_a_search_says_how_many_runs_it_may_have_missed(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "MAX_INDEXED_PER_SEARCH", 2)
    for number in range(5):
        await stored(pool, LOCAL_TENANT, a_run(question=f"Why is sea {number} salt?"))
    page = await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "salt", None, 20)
    assert ([r.run.question for r in page.runs], page.unindexed_count) == (
        ["Why is sea 4 salt?", "Why is sea 3 salt?"],
        3,
    )


async def test_a_change_that_is_not_committed_while_a_run_is_indexed_is_not_lost(pool: Database) -> None:
    run = await stored(pool, LOCAL_TENANT, a_run(question="Why is the sea salt?"))
    await index_queued_runs(pool, LOCAL_TENANT, 10)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update run set title = 'Brine' where id = %s", (run.id,))
        assert await index_queued_runs(pool, LOCAL_TENANT, 10) == 0  # it neither waits nor forgets
    page = await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "brine", None, 20)
    assert [r.run.id for r in page.runs] == [run.id]


async def test_a_run_that_changes_while_its_words_are_listed_does_not_wait_and_is_indexed_again(pool: Database) -> None:
    run = await stored(pool, LOCAL_TENANT, a_run(question="Why is the sea salt?"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        queued = await run_search.list_queued_runs(connection, LOCAL_TENANT, 10)
        async with pool.transaction(LOCAL_TENANT) as other:
            await other.execute("set local lock_timeout = '100ms'")
            await other.execute("update run set title = 'Brine' where id = %s", (run.id,))
        assert await run_search.store_words(connection, {one: RunWords(["stale"], {}) for one in queued}) == 0
    assert await index_queued_runs(pool, LOCAL_TENANT, 10) == 1
    page = await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "brine", None, 20)
    assert [r.run.id for r in page.runs] == [run.id]


async def test_no_search_finds_a_run_of_another_tenant(pool: Database, other_tenant: UUID) -> None:
    await stored(pool, LOCAL_TENANT, a_run(question="Why is the sea salt?"))
    theirs = await stored(pool, other_tenant, a_run(question="Why is the sea salt?"))
    await index_all_tenants(pool, 10)
    async with pool.transaction(other_tenant) as connection:
        for tenant in (LOCAL_TENANT, other_tenant):  # even with the words of the other tenant
            query = render_tsquery(parse_word_query("salt"), tenant)
            for in_head in (False, True):
                matches = await run_search.find_runs(connection, query, None, 10, in_head=in_head)
                assert [one.run_id for one in matches] == ([theirs.id] if tenant == other_tenant else [])


async def test_words_that_an_erasure_removes_from_a_report_are_not_found_any_more(
    pool: Database, owner_url: str
) -> None:
    run = await stored(pool, LOCAL_TENANT, a_run(question="Why is the sea salt?"))
    body = '{"title": "Rivers", "answer": null, "sections": [], "limits": "", "written_by": ""}'
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            "insert into app.report (run_id, version, tenant_id, seq, status, stop_reason, body) "
            "values (%s, 1, %s, 1, 'complete', 'answered', %s)",
            (run.id, LOCAL_TENANT, body),
        )
        assert len((await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "rivers", None, 20)).runs) == 1
        owner.execute("update app.report set body = replace(body::text, 'Rivers', '[erased]')::jsonb")
    assert (await run_lists.list_runs(pool, LOCAL_TENANT, RunFilter(), "rivers", None, 20)).runs == []


@pytest.mark.timeout(300)
async def test_the_tags_of_ten_thousand_runs_are_listed_from_one_row_of_the_index_each(
    crowd: None, pool: Database
) -> None:
    async with pool.transaction(LOCAL_TENANT) as connection:
        watched = Watched(connection)
        tags = await run_labels.list_all_tags(watched, "", 200)  # type: ignore[arg-type]
    assert len(tags) == 16
    (plan,) = watched.plans
    assert "run_tag_by_time" in plan
    assert not re.search(r"Seq Scan on run_tag", plan), plan
    read = re.search(r"Buffers: shared hit=(\d+)", plan)
    assert read is not None
    assert int(read[1]) < 200, plan
