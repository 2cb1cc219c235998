"""What a run knows of its thread: sentences of earlier reports that it may cite again, and notes that graphs left."""

from typing import Any
from uuid import UUID, uuid4

from offing.core.report import Citation, Report
from offing.core.run import RunStatus
from offing.core.tool import Span
from offing.kernel.store import ThreadSentence
from offing.kernel.thread_search import ranked
from offing.services.graphs import installed
from offing.services.library import Upload
from offing.services.runs import RunRequest
from offing.storage import reports
from offing.storage.runs import RunRow
from offing_workers.replay import replayed
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.workers.conftest import Platform
from tests.workers.families import GRAPHS

STANDING = {"OFFING_GRAPHS": GRAPHS}


async def asked(platform: Platform, question: str, graph: str, **more: Any) -> tuple[RunRow, Report]:
    run = await platform.submit(RunRequest(question, graph=graph, **more))
    ended = await platform.ended(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run.id)
    assert report is not None
    return ended, report


def section(report: Report, heading: str) -> list[str]:
    return [s.text for part in report.sections if part.heading == heading for s in part.sentences]


async def test_earlier_reports_are_searched_and_what_they_quote_is_cited_again(standing: Platform) -> None:
    documents = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(standing.database, standing.tenant, documents)
    first, report = await asked(standing, "How does a Fresnel lens save light?", "agentflow")
    assert report.citations
    run, back = await asked(standing, "a Fresnel lens", "conversing", thread=first.thread)
    assert section(back, "Said")
    assert all(s.supported for part in back.sections if part.heading == "Said" for s in part.sentences)
    quoted = {(c.span.artefact, c.quote) for c in report.citations}
    assert {(c.span.artefact, c.quote) for c in back.citations} <= quoted
    again = await replayed(standing.database, standing.tenant, run.id, installed(GRAPHS))
    assert again.same, again.detail


async def test_a_note_is_read_by_later_runs_of_the_thread_alone_and_the_latest_counts(standing: Platform) -> None:
    first, one = await asked(standing, "first", "conversing")
    _, two = await asked(standing, "second", "conversing", thread=first.thread)
    _, three = await asked(standing, "third", "conversing", thread=first.thread)
    _, other = await asked(standing, "elsewhere", "conversing")
    assert [section(r, "Notes") for r in (one, two, three, other)] == [[], ["last: first!"], ["last: second!"], []]


def said(text: str, *quotes: str) -> ThreadSentence:
    citations = tuple(Citation(n, Span(uuid4(), 0, 1), quote, uuid4(), "t") for n, quote in enumerate(quotes, 1))
    return ThreadSentence(UUID(int=1), "What about boats?", text, citations)


def test_the_more_of_the_words_a_sentence_holds_the_earlier_it_comes() -> None:
    sentences = (said("The Heron is a ferry."), said("A berth costs 12 crowns."), said("The Heron needs a berth."))
    found = ranked("What berth does the Heron take?", sentences, 2)
    assert [one.text for one in found] == ["The Heron needs a berth.", "The Heron is a ferry."]


def test_nothing_in_common_is_nothing_found() -> None:
    assert ranked("smoked herring", (said("A berth costs 12 crowns."),), 5) == []
    assert ranked("", (said("A berth costs 12 crowns."),), 5) == []
