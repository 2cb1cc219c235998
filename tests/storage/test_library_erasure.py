"""Erasing a source leaves no copy of its words in the database. The whole database is searched for them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from offing.clock import new_id
from offing.core.errors import Conflict, NotFound
from offing.core.model import EngineResponse, Message
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.role_call import CallOrigin, SegmentPosition
from offing.core.run import FencingToken, RunStatus
from offing.core.step import StepDraft, StepKind
from offing.core.store_item import ItemPut, Vectors
from offing.core.tokens import CompletionSpan, SpanKind
from offing.core.tool import SourceSpan
from offing.core.trajectory import BoundaryReason
from offing.core.usage import UsageDelta
from offing.library.copy_eraser import ERASED
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.services.erasure import ErasureResult, erase_source
from offing.services.ingestion import Upload
from offing.storage import forks, reports, rewards, role_calls, segments, steps, store_items, threads
from offing.storage.forks import NewFork
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rewards import NewScore
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import TERM, claimed
from tests.storage.graph_histories import AT
from tests.storage.test_role_calls import a_trace, an_answer, wrote
from tests.storage.thread_checkpointer import saver_of

SECRET = "The mill at Ardenfall was sold to Ina Brook in the spring of nineteen twelve for eleven hundred crowns."
LEDGER = f"# Mill ledger\n\n{SECRET} Nobody was told.\n".encode()
OTHER = b"# Harbour book\n\nThe harbour of Ardenfall was dredged by the town in the summer of nineteen thirteen.\n"

TABLES = "select table_name from information_schema.tables where table_schema = 'app' and table_type = 'BASE TABLE'"


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


class SpeakerOutput(BaseModel):
    text: str


def find_tables(owner_url: str, words: str) -> set[str]:
    """Tables that hold the words anywhere, as the owner sees them."""
    with psycopg.connect(owner_url) as connection:
        tables = [str(name) for (name,) in connection.execute(TABLES)]
        query = "select 1 from app.{} t where t::text ilike %s or t::text ilike %s limit 1"
        as_bytes = f"%{words.encode().hex()}%"
        return {
            table
            for table in tables
            if connection.execute(query.format(table).encode(), (f"%{words}%", as_bytes)).fetchone()
        }


async def uploaded(pool: Database, readers: DocumentReaderPool, name: str, data: bytes) -> UUID:
    (result,) = await ingestion.ingest_uploads(pool, LOCAL_TENANT, [Upload(name, data)], readers=readers)
    assert result.source_id is not None
    return result.source_id


async def a_run_that_read(pool: Database, query: str, *, ended: bool = True) -> FencingToken:
    """A run with a search step, a role call that was shown the passage, and a report that quotes it, and was judged."""
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    hit = (await library.search_passages(pool, LOCAL_TENANT, query, 1))[0]
    span = SourceSpan(hit.text_id, hit.start, hit.end)
    results = {"text_id": str(hit.text_id), "source": str(hit.source_id), "title": hit.title, "text": hit.text}
    quote = hit.text.split("\n\n")[1]
    citation = Citation(1, span, quote, hit.source_id, hit.title)
    text = Sentence("s1", f"As it says: {quote}", (1,))
    report = Report("Findings", ReportStatus.COMPLETE, "answered", text, (Section("All", (text,)),), (citation,))
    messages = (Message("user", ("Evidence E1:", hit.text)),)
    answer = EngineResponse(SpeakerOutput(text=quote), text=f"I read: {quote}", model="m", messages=messages)
    drafts = [
        StepDraft(
            StepKind.TOOL_RESULT, hit.title, {"tool": "search_library", "content": {"passages": [results]}, "spans": []}
        ),
        StepDraft(StepKind.MEMORY, "noted", {"note": quote}),
        StepDraft(StepKind.REPORT, "Findings", reports.report_to_json(report)),
    ]
    async with pool.transaction(LOCAL_TENANT) as connection:
        written = await steps.append_steps(connection, fence, TERM, drafts, UsageDelta())
        row = role_calls.build_role_call_row(written[1].seq, CallOrigin("planner", "litellm", 1), answer, None)
        await role_calls.insert_role_calls(connection, fence, [row])
        await reports.insert_report(connection, fence, written[2].seq, report)
        rated = NewScore(new_id(), "rubric_judge", "1", 0.5, "", {"reason": f"It says {quote}"})
        await rewards.insert_scores(connection, LOCAL_TENANT, fence.run_id, 1, [rated])
        if ended:
            await connection.execute("update run set status = %s where id = %s", (RunStatus.DONE, fence.run_id))
    return fence


def answered(state: MessagesState) -> dict[str, Any]:
    message = ToolMessage(f"[E1] {SECRET}", tool_call_id="c", id="2", artifact={"passages": [{"text": SECRET}]})
    return {"messages": [message, AIMessage(f"As it says: {SECRET}", id="3")]}


def stated(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"Shorter: {SECRET}", id="4")]}


def conversation() -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", answered)
    graph.add_node("state", stated)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "state")
    return graph


async def test_the_states_of_a_run_are_cleaned_and_its_thread_continues(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    saver = FencedCheckpointer(pool, fence, content_types=())
    requests: dict[str, Any] = {"messages": [HumanMessage("What of the mill?", id="1")]}
    await conversation().compile(checkpointer=saver).ainvoke(requests, AT)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update run set status = %s where id = %s", (RunStatus.DONE, fence.run_id))
    assert "checkpoint_value" in find_tables(owner_url, "Ina Brook")
    await erase_source(pool, LOCAL_TENANT, source)
    assert find_tables(owner_url, "Ina Brook") == set()
    assert fence.thread_id is not None
    later = await saver_of(pool, fence.thread_id, is_new=False)
    graph = conversation().compile(checkpointer=later)
    await graph.aupdate_state(AT, {"messages": [HumanMessage("And then?", id="5")]})
    await later.flush_now()
    first, text, *messages, last = (await graph.aget_state(AT)).values["messages"]
    assert (first.content, last.content) == ("What of the mill?", "And then?")
    assert (text.content, text.artifact) == (f"[E1] {ERASED}.", {"passages": [{"text": f"{ERASED}."}]})
    assert [message.content for message in messages] == [f"As it says: {ERASED}.", f"Shorter: {ERASED}."]


async def test_nothing_of_an_erased_source_is_left(pool: Database, owner_url: str, readers: DocumentReaderPool) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    await uploaded(pool, readers, "harbour.md", OTHER)
    await a_run_that_read(pool, "mill")
    await a_run_that_read(pool, "harbour")
    assert find_tables(owner_url, "Ina Brook") >= {
        "extracted_text",
        "step",
        "role_call",
        "text_part",
        "citation",
        "report",
        "reward",
    }
    erased = await erase_source(pool, LOCAL_TENANT, source)
    assert erased == ErasureResult(sources=1, snapshots=1, passages=1, steps=3)
    for words in ("Ina Brook", "Mill ledger", "Nobody was told", "eleven hundred"):
        assert find_tables(owner_url, words) == set()
    assert await library.search_passages(pool, LOCAL_TENANT, "mill crowns", 5) == []
    stored = {"extracted_text", "step", "role_call", "citation", "report"}
    assert find_tables(owner_url, "dredged by the town") >= stored


async def test_what_runs_kept_in_the_store_and_read_there_is_cleaned(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    reader = (await claimed(pool, LOCAL_TENANT)).fence
    writer = await a_run_that_read(pool, "mill", ended=False)
    vectors = Vectors("e", 1, b"\0" * 4)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await store_items.write_items(
            connection, LOCAL_TENANT, [ItemPut(("n",), "k", {"text": SECRET}, None, vectors)], writer.run_id
        )
        for fence in (writer, reader):
            note = StepDraft(StepKind.NOTE, f"store {SECRET}", {"content": {"found": [SECRET]}}, "store")
            await steps.append_steps(connection, fence, TERM, [note], UsageDelta())
            await connection.execute("update run set status = %s where id = %s", (RunStatus.DONE, fence.run_id))
    await erase_source(pool, LOCAL_TENANT, source)
    assert find_tables(owner_url, "Ina Brook") == set()
    with psycopg.connect(owner_url) as connection:
        left = connection.execute("select value, vectors from app.store_item").fetchone()
    assert left == ({"text": f"{ERASED}."}, None)


async def test_what_a_run_read_is_forgotten_as_tokens_too(pool: Database, readers: DocumentReaderPool) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    spans = (CompletionSpan(SpanKind.PLAN, 0, 1),)
    seq = await wrote(pool, fence, an_answer(a_trace(), spans=spans), SegmentPosition(0, 0, BoundaryReason.ROOT))
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update run set status = %s where id = %s", (RunStatus.DONE, fence.run_id))
    await erase_source(pool, LOCAL_TENANT, source)
    async with pool.transaction(LOCAL_TENANT) as connection:
        (turn,) = [t for t in await segments.read_role_calls(connection, fence.run_id) if t.seq == seq]
    assert (turn.tokens, turn.spans, turn.trainable) == (None, (), "none")


async def test_a_report_says_where_something_was_erased(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill")
    await erase_source(pool, LOCAL_TENANT, source)
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("select quote, title, text_id from app.citation where run_id = %s", (fence.run_id,))
        assert row.fetchall() == [(ERASED, ERASED, None)]
        body = connection.execute(
            "select body -> 'answer' ->> 'text' from app.report where run_id = %s", (fence.run_id,)
        )
        assert body.fetchone() == (f"As it says: {ERASED}.",)


async def test_what_a_source_contained_before_it_was_replaced_is_erased_too(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    await a_run_that_read(pool, "mill")
    assert await uploaded(pool, readers, "ledger.md", b"# Mill ledger\n\nNothing to see.\n") == source
    erased = await erase_source(pool, LOCAL_TENANT, source)
    assert erased.snapshots == 2
    assert find_tables(owner_url, "Ina Brook") == set()


async def test_text_that_another_source_holds_stays_until_that_one_goes(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    first = await uploaded(pool, readers, "ledger.md", LEDGER)
    second = await uploaded(pool, readers, "copy.md", LEDGER)
    await a_run_that_read(pool, "mill")
    assert await erase_source(pool, LOCAL_TENANT, first) == ErasureResult(1, 0, 0, 0)
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "mill", 5)] == ["copy.md"]
    await erase_source(pool, LOCAL_TENANT, second)
    assert find_tables(owner_url, "Ina Brook") == set()


async def test_a_run_that_is_still_reading_stands_in_the_way(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    await a_run_that_read(pool, "mill", ended=False)
    with pytest.raises(Conflict):
        await erase_source(pool, LOCAL_TENANT, source)
    assert len(await library.search_passages(pool, LOCAL_TENANT, "mill", 5)) == 1


async def test_a_fork_that_is_being_made_of_a_run_that_read_it_stands_in_the_way(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    run = (await a_run_that_read(pool, "mill")).run_id
    async with pool.transaction(LOCAL_TENANT) as connection:
        origin = (await forks.lock_origin(connection, run)).run
        stored = origin.tool_policy, origin.tool_policy_sha256, origin.budget, origin.usage
        new = NewFork(new_id(), new_id(), origin.last_seq, origin.graph_version, origin.engines, *stored)
        await threads.insert_thread(connection, LOCAL_TENANT, new.thread_id, "A fork")
        await forks.insert_fork(connection, origin, new)
        erasing = asyncio.create_task(erase_source(pool, LOCAL_TENANT, source))
        while not waiting_for_locks(owner_url):
            await asyncio.sleep(0.01)
            assert not erasing.done()
    with pytest.raises(Conflict):
        await erasing


def waiting_for_locks(owner_url: str) -> int:
    with psycopg.connect(owner_url) as connection:
        query = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        row = connection.execute(query).fetchone()
    return row[0] if row else 0


async def test_another_tenants_source_cannot_be_erased(
    pool: Database, readers: DocumentReaderPool, other_tenant: UUID
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    with pytest.raises(NotFound):
        await erase_source(pool, other_tenant, source)
    assert len(await library.search_passages(pool, LOCAL_TENANT, "mill", 5)) == 1
