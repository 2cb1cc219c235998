"""The checker through real workers: claims judged by a provider's model, conflicts listed, and failures that say so."""

from pathlib import Path
from typing import Any

import pytest

from offing.core.claim_table import analyze_claims
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.report import ClaimVerdict, Report
from offing.core.report_formats import render_markdown
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel_run
from offing.storage import reports
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Fault, Reply, Slow
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, PLAN, ROLES, VERDICT, reported, says

TOWER = "John Smeaton built the third Eddystone tower of granite. The third tower was completed in October 1759."
GUIDE = "The third Eddystone tower was finished in 1764. John Smeaton built the third Eddystone tower, says the guide."
COMMAND = {"tool": "search_library", "args": {"query": "third Eddystone tower Smeaton"}}


def a_report(first: str, second: str) -> dict[str, Any]:
    """A draft on two documents, whose passages are E1 and E2 in the order of retrieval."""
    sentences = [
        {"text": "Smeaton built the tower.", "citations": [{"evidence": first, "quote": "John Smeaton built"}]},
        {"text": "The tower was built of marble.", "citations": [{"evidence": first, "quote": "Eddystone tower"}]},
        {"text": "A lighthouse keeper lived there.", "citations": [{"evidence": second, "quote": "Eddystone tower"}]},
    ]
    return {"title": "The third tower", "answer": "", "sections": [{"heading": "Tower", "sentences": sentences}]}


def choose_engines(server: WireServer, checking: WireServer) -> dict[str, EngineConfig]:
    options = {"output_mode": "text"}
    engine = EngineConfig(engine="litellm", model="openai/stand-in", api_base=server.url, options=options)
    checker = engine.model_copy(update={"model": "openai/checking-model", "api_base": checking.url})
    return {**dict.fromkeys(ROLES, engine), "checker": checker}


async def run_checked(platform: Platform, folder: Path, *checker: Reply) -> tuple[RunRow, Report]:
    """A question about two documents; the checker has its own model, which says this."""
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TOWER}\n")
    (folder / "guide.md").write_text(f"# Guide\n\n{GUIDE}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    writer = [says(one) for one in (ANALYSIS, PLAN, COMMAND, VERDICT, a_report("E1", "E2"))]
    async with WireServer(scripted(*writer)) as server, WireServer(scripted(*checker)) as checking:
        engines = choose_engines(server, checking)
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=engines)
        ended = await platform.ended((await platform.submit(request)).id)
    return ended, await reported(platform, ended)


def passages_by_file(report: Report) -> dict[str, str]:
    """The id of the passage of each document, by a word that stands in one of them only."""
    first = report.citations[0].title
    return {"tower": "E1", "guide": "E2"} if first == "Eddystone" else {"tower": "E2", "guide": "E1"}


def answer(*lines: str) -> Completion:
    return Completion(text="\n".join(lines))


async def learn_ids(platform: Platform, folder: Path) -> dict[str, str]:
    """The ids of the passages in a run of the same documents, which retrieval orders by its scores."""
    _, report = await run_checked(platform, folder, answer("s1 | supported | E1 | it says so"))
    return passages_by_file(report)


async def test_claims_are_judged_and_a_contradiction_and_a_conflict_have_their_words(
    shared_platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "first").mkdir()
    ids = await learn_ids(shared_platform, tmp_path / "first")
    (tmp_path / "second").mkdir()
    tower, guide = ids["tower"], ids["guide"]
    built = "tower of granite" if tower == "E1" else "says the guide"
    ended, report = await run_checked(
        shared_platform,
        tmp_path / "second",
        answer(
            "s1 | supported | E1 | it names him",
            f"s2 | contradicted | E1 | another material | {built}",
            "s3 | not found | E2 | no keeper is named",
            f"conflict | {tower} | completed in October 1759 | {guide} | finished in 1764 | year of completion",
        ),
    )
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    verdicts = [sentence.verdict for sentence in report.sentences()]
    assert verdicts == [ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_FOUND]
    quotes = {citation.number: citation.quote for citation in report.citations}
    judgment = report.sentences()[1].judgment
    assert judgment is not None
    assert quotes[judgment.contradiction or 0] == built
    (conflict,) = report.conflicts
    assert {quotes[n] for n in conflict.citations} == {"completed in October 1759", "finished in 1764"}
    assert report.check is not None
    assert (report.check.checked_by, report.check.judgments) == ("openai/checking-model", 3)
    markdown = render_markdown(report)
    assert "year of completion" in markdown
    assert "no keeper is named" in markdown
    assert ended.usage.tokens == 6 * 18


async def test_an_invented_contradiction_and_conflict_are_not_shown(shared_platform: Platform, tmp_path: Path) -> None:
    _, report = await run_checked(
        shared_platform,
        tmp_path,
        answer(
            "s1 | contradicted | E1 | another person | Winstanley built the third tower",
            "s2 | supported | E1 | it says so",
            "s3 | partly | E2 | only the tower",
            "conflict | E1 | completed in 1790 | E2 | finished in 1812 | year",
        ),
    )
    verdicts = [sentence.verdict for sentence in report.sentences()]
    assert verdicts == [ClaimVerdict.PARTLY, ClaimVerdict.SUPPORTED, ClaimVerdict.PARTLY]
    assert report.check is not None
    assert (report.check.unverified, report.conflicts) == (2, ())
    assert "1790" not in render_markdown(report)


FAILING: dict[str, list[Reply]] = {
    "babbles": [answer("I have read it with joy, and all of it is very good.")] * 8,
    "is down": [Fault(401, "no such key")] * 8,
}


@pytest.mark.parametrize("case", FAILING)
async def test_a_checker_that_fails_leaves_the_verdicts_of_the_rules_and_the_report_says_so(
    shared_platform: Platform, tmp_path: Path, case: str
) -> None:
    ended, report = await run_checked(shared_platform, tmp_path, *FAILING[case])
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert [sentence.verdict for sentence in report.sentences()] == [ClaimVerdict.SUPPORTED] * 3
    assert report.check is not None
    assert report.check.judgments == 0
    assert report.check.failure
    assert report.check.failure.rstrip(".") in analyze_claims(report).judged_by
    failed = [s for s in await shared_platform.steps(ended.id) if s.kind is StepKind.FAILURE]
    assert len(failed) == 1


async def test_a_run_is_cancelled_while_its_checker_thinks(shared_platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "tower.md").write_text(f"# Eddystone\n\n{TOWER}\n")
    await ingest_folder(shared_platform.database, shared_platform.tenant, tmp_path)
    writer = [says(one) for one in (ANALYSIS, PLAN, COMMAND, VERDICT, a_report("E1", "E1"))]
    async with WireServer(scripted(*writer)) as server, WireServer(scripted(Slow(answer("s1"), 60))) as checking:
        request = RunRequest("Who built it?", budget=Budget(max_turns=3), engines=choose_engines(server, checking))
        run = await shared_platform.submit(request)
        await shared_platform.until(run.id, lambda _: bool(checking.requests))
        await cancel_run(
            shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
        )
        ended = await shared_platform.ended(run.id, 30)
    assert ended.status is RunStatus.CANCELLED
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        assert await reports.find_latest_report(connection, run.id) is None


async def test_a_request_for_an_unknown_optional_role_names_the_roles(shared_platform: Platform) -> None:
    engine = EngineConfig(engine="extractive")
    with pytest.raises(InvalidInput, match="checker") as caught:
        await shared_platform.submit(RunRequest("Who built it?", engines={"chequer": engine}))
    assert "chequer" in str(caught.value)
