"""What a run knows of its thread: sentences of earlier reports that it may cite again, and notes that graphs left."""

from typing import Any
from uuid import UUID, uuid4

from offing.core.report import Citation, Report
from offing.core.run import RunStatus
from offing.core.tool import SourceSpan
from offing.kernel.run_store import ThreadSentence
from offing.kernel.thread_search import rank_sentences
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.runs import RunRequest
from offing.storage import reports
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.workers.conftest import Platform
from tests.workers.parent_graph import GRAPHS

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": GRAPHS}


async def run_question(platform: Platform, question: str, graph: str, **more: Any) -> tuple[RunRow, Report]:
    run = await platform.submit(RunRequest(question, graph=graph, **more))
    ended = await platform.ended(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    return ended, report


def section(report: Report, heading: str) -> list[str]:
    return [s.text for part in report.sections if part.heading == heading for s in part.sentences]


async def test_earlier_reports_are_searched_and_what_they_quote_is_cited_again(shared_platform: Platform) -> None:
    documents = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(shared_platform.database, shared_platform.tenant, documents)
    first, report = await run_question(shared_platform, "How does a Fresnel lens save light?", "agentflow")
    assert report.citations
    run, back = await run_question(shared_platform, "a Fresnel lens", "conversing", thread_id=first.thread_id)
    assert section(back, "Said")
    assert all(s.is_supported for part in back.sections if part.heading == "Said" for s in part.sentences)
    quoted = {(c.span.text_id, c.quote) for c in report.citations}
    assert {(c.span.text_id, c.quote) for c in back.citations} <= quoted
    again = await replay_run(shared_platform.database, shared_platform.tenant, run.id, open_registry(GRAPHS))
    assert again.is_same, again.detail


async def test_a_note_is_read_by_later_runs_of_the_thread_alone_and_the_latest_counts(
    shared_platform: Platform,
) -> None:
    first, one = await run_question(shared_platform, "first", "conversing")
    _, two = await run_question(shared_platform, "second", "conversing", thread_id=first.thread_id)
    _, three = await run_question(shared_platform, "third", "conversing", thread_id=first.thread_id)
    _, other = await run_question(shared_platform, "elsewhere", "conversing")
    assert [section(r, "Notes") for r in (one, two, three, other)] == [[], ["last: first!"], ["last: second!"], []]


def thread_sentence(text: str, *quotes: str) -> ThreadSentence:
    citations = tuple(Citation(n, SourceSpan(uuid4(), 0, 1), quote, uuid4(), "t") for n, quote in enumerate(quotes, 1))
    return ThreadSentence(UUID(int=1), "What about boats?", text, citations)


def test_the_more_of_the_words_a_sentence_holds_the_earlier_it_comes() -> None:
    sentences = (
        thread_sentence("The Heron is a ferry."),
        thread_sentence("A berth costs 12 crowns."),
        thread_sentence("The Heron needs a berth."),
    )
    result = rank_sentences("What berth does the Heron take?", sentences, 2)
    assert [one.text for one in result] == ["The Heron needs a berth.", "The Heron is a ferry."]


def test_nothing_in_common_is_nothing_found() -> None:
    assert rank_sentences("smoked herring", (thread_sentence("A berth costs 12 crowns."),), 5) == []
    assert rank_sentences("", (thread_sentence("A berth costs 12 crowns."),), 5) == []
