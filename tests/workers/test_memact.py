"""Memory as action through real workers: its segments as they are stored, with a language model, and when disturbed."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import offing.kernel.journal
import offing_workers.slice
from offing.core.model import EngineChoice
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import Fracture
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage import segments
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from offing.storage.segments import StoredSegment
from offing.world.tasks import WorldTask, tasks
from tests.chaos import checker
from tests.chaos.stage import facts
from tests.chaos.trial import differences
from tests.documents import ingest_folder
from tests.wire.replies import Completion, Reply
from tests.wire.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.disturbing import Bench, Disturbed, Quiet, What, When, shape
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_models import REPORT, TEXT, reported, says

WORLD = "heldout-8@small"
FOUR = next(iter(tasks(WORLD, count=1, hops=(4, 4))))


def oracle(task: WorldTask, form: str, graph: str = "memact") -> RunRequest:
    engines = {"agent": EngineChoice(engine="rules", model="oracle", form=form)}
    return RunRequest(task.question, graph, budget=Budget(turns=10), engines=engines, scope=task.scope)


async def stored(platform: Platform, run: UUID) -> list[StoredSegment]:
    async with platform.database.transaction(platform.tenant) as connection:
        return await segments.segments_of(connection, run)


async def test_an_edit_splits_what_is_stored_and_every_turn_is_in_one_segment(standing: Platform) -> None:
    for form in ("plain", "compact"):
        ended = await standing.ended((await standing.submit(oracle(FOUR, form))).id)
        report = await reported(standing, ended)
        found = await stored(standing, ended.id)
        steps = [s.seq for s in await standing.steps(ended.id) if s.kind is StepKind.TURN]
        assert ended.stop_reason is StopReason.ANSWERED
        assert report.answer
        assert report.answer.text == (FOUR.answers or ("not answerable",))[0]
        assert [s.fracture for s in found] == [Fracture.ROOT, Fracture.MEMORY_EDIT]
        assert [t.seq for s in found for t in s.turns] == steps
        assert [s.kind for s in found[0].turns[-1].spans] == [SpanKind.MEMORY_EDIT]
        assert [s.kind for s in found[1].turns[-1].spans] == [SpanKind.ANSWER]
        assert found[1].turns[-1].done


SEARCH = {"tool": "search_library", "args": {"query": "third tower"}}
PRUNE = {"tool": "prune", "args": {"delete_ids": ["r1"], "note": "Smeaton built it [E1]."}}
PLAIN = (
    '<action>search_library {"query": "third tower"}</action>',
    '<memory>prune  {"delete_ids": ["r1"], "note": "Smeaton built it [E1]."}</memory>',
    '<action>search_library {"query": "tower"}</action>\n',
    '<answer>Smeaton built it [E1].\n- It was Smeaton. [E1: "John Smeaton built the third Eddystone tower"]</answer>',
)


async def asked(platform: Platform, folder: Path, *replies: Reply, form: str = "") -> RunRow:
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    async with WireServer(scripted(*replies)) as server:
        options = {} if form else {"form": "text"}
        choice = EngineChoice(
            engine="litellm", model="openai/stand-in", api_base=server.url, form=form, options=options
        )
        request = RunRequest("Who built the third tower?", "memact", budget=Budget(turns=5), engines={"agent": choice})
        return await platform.ended((await platform.submit(request)).id)


async def test_a_model_edits_its_context_and_is_named_as_the_author(standing: Platform, tmp_path: Path) -> None:
    ended = await asked(standing, tmp_path, says(SEARCH), says(PRUNE), says({"answer": REPORT}))
    report = await reported(standing, ended)
    assert (ended.stop_reason, ended.spent.turns) == (StopReason.ANSWERED, 3)
    assert {c.quote for c in report.citations} == {"John Smeaton built"}
    assert report.written_by == "openai/stand-in"


async def test_a_plain_conversation_goes_on_letter_by_letter(standing: Platform, tmp_path: Path) -> None:
    ended = await asked(standing, tmp_path, *(Completion(text=text) for text in PLAIN), form="plain")
    report = await reported(standing, ended)
    found = await stored(standing, ended.id)
    assert "John Smeaton built the third Eddystone tower" in {c.quote for c in report.citations}
    assert [[t.completion for t in s.turns] for s in found] == [list(PLAIN[:2]), list(PLAIN[2:])]
    assert [s.fracture for s in found] == [Fracture.ROOT, Fracture.MEMORY_EDIT]


@pytest.fixture
async def bench(owner_url: str, app_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(offing.kernel.journal, "RETRY_SECONDS", 0.005)
    monkeypatch.setattr(offing_workers.slice, "RETURN_PAUSE", 0.005)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        async with Database(app_url, most=4) as database:
            yield Bench(owner, app_url, database)


async def left_by(bench: Bench, at: int, when: When, what: What) -> tuple[checker.Rows, int]:
    """What a run leaves that was disturbed at its nth transaction, 0 for none; and how many transactions it began."""
    request = oracle(FOUR, "plain")
    run = (await submit(bench.database, Quiet(), LOCAL_TENANT, request, graphs=installed(ALL_GRAPHS))).run.id
    async with Disturbed(bench.app_url, most=4) as database:
        database.at, database.when, database.what = at, when, what
        await bench.advance(database, run)
    for _ in range(3):
        if facts(bench.ask, run).run.ended_at is None:
            bench.lose(run)
            await bench.advance(bench.database, run)
    return facts(bench.ask, run), database.begun


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["away", "killed"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_run_ends_the_same_wherever_it_is_disturbed(bench: Bench, when: When, what: What) -> None:
    plain, count = await left_by(bench, 0, when, what)
    assert plain.of_kind("memory")
    wrong = list[str]()
    for at in range(1, count + 1):
        rows, _ = await left_by(bench, at, when, what)
        found = [*checker.violations(rows), *differences(rows, plain)]
        if shape(rows) != shape(plain):
            found.append(f"steps {shape(rows)}, undisturbed {shape(plain)}")
        wrong += [f"{what} {when} transaction {at}: {complaint}" for complaint in found]
    assert not wrong, "\n".join(wrong)
