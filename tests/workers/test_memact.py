"""Memory as action through real workers: its segments as they are stored, with a language model, and when disturbed."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import offing.kernel.journal
import offing_workers.slice
from offing.core.model import EngineConfig
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import BoundaryReason
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import segments
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from offing.storage.segments import StoredSegment
from offing_workers.replay import replay_run
from offing_world.tasks import WorldTask, generate_tasks
from tests.chaos import checker
from tests.chaos.private_stack import facts
from tests.chaos.trial import differences
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Reply
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.interrupted_runs import Bench, Disturbed, Quiet, What, When, shape
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_models import REPORT, TEXT, reported, says

WORLD = "heldout-8@small"
FOUR = next(iter(generate_tasks(WORLD, count=1, hops=(4, 4))))


def oracle(task: WorldTask, form: str, graph: str = "memact") -> RunRequest:
    engines = {"agent": EngineConfig(engine="rules", model="oracle", prompt_format=form)}
    return RunRequest(task.question, graph, budget=Budget(max_turns=10), engines=engines, scope=task.scope)


async def stored(platform: Platform, run_id: UUID) -> list[StoredSegment]:
    async with platform.database.transaction(platform.tenant) as connection:
        return await segments.read_segments(connection, run_id)


async def test_an_edit_splits_what_is_stored_and_every_turn_is_in_one_segment(shared_platform: Platform) -> None:
    for form in ("text", "compact"):
        ended = await shared_platform.ended((await shared_platform.submit(oracle(FOUR, form))).id)
        report = await reported(shared_platform, ended)
        result = await stored(shared_platform, ended.id)
        steps = [s.seq for s in await shared_platform.steps(ended.id) if s.kind is StepKind.ROLE_CALL]
        assert ended.stop_reason is StopReason.ANSWERED
        assert report.answer
        assert report.answer.text == (FOUR.answers or ("not answerable",))[0]
        assert [s.boundary_reason for s in result] == [BoundaryReason.ROOT, BoundaryReason.MEMORY_EDIT]
        assert [t.seq for s in result for t in s.role_calls] == steps
        assert [s.kind for s in result[0].role_calls[-1].spans] == [SpanKind.MEMORY_EDIT]
        assert [s.kind for s in result[1].role_calls[-1].spans] == [SpanKind.ANSWER]
        assert result[1].role_calls[-1].is_final


SEARCH = {"tool": "search_library", "args": {"query": "third tower"}}
PRUNE = {"tool": "prune", "args": {"delete_ids": ["r1"], "note": "Smeaton built it [E1]."}}
PLAIN = (
    '<action>search_library {"query": "third tower"}</action>',
    '<memory>prune  {"delete_ids": ["r1"], "note": "Smeaton built it [E1]."}</memory>',
    '<action>search_library {"query": "tower"}</action>\n',
    '<answer>Smeaton built it [E1].\n- It was Smeaton. [E1: "John Smeaton built the third Eddystone tower"]</answer>',
)


async def run_question(platform: Platform, folder: Path, *replies: Reply, form: str = "") -> RunRow:
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    async with WireServer(scripted(*replies)) as server:
        options = {} if form else {"output_mode": "text"}
        choice = EngineConfig(
            engine="litellm", model="openai/stand-in", api_base=server.url, prompt_format=form, options=options
        )
        request = RunRequest(
            "Who built the third tower?", "memact", budget=Budget(max_turns=5), engines={"agent": choice}
        )
        return await platform.ended((await platform.submit(request)).id)


async def test_a_model_edits_its_context_and_is_named_as_the_author(shared_platform: Platform, tmp_path: Path) -> None:
    ended = await run_question(shared_platform, tmp_path, says(SEARCH), says(PRUNE), says({"answer": REPORT}))
    report = await reported(shared_platform, ended)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 3)
    assert {c.quote for c in report.citations} == {"John Smeaton built"}
    assert report.written_by == "openai/stand-in"


async def test_a_plain_conversation_continues_letter_by_letter(shared_platform: Platform, tmp_path: Path) -> None:
    ended = await run_question(shared_platform, tmp_path, *(Completion(text=text) for text in PLAIN), form="text")
    report = await reported(shared_platform, ended)
    result = await stored(shared_platform, ended.id)
    assert "John Smeaton built the third Eddystone tower" in {c.quote for c in report.citations}
    assert [[t.completion for t in s.role_calls] for s in result] == [list(PLAIN[:2]), list(PLAIN[2:])]
    assert [s.boundary_reason for s in result] == [BoundaryReason.ROOT, BoundaryReason.MEMORY_EDIT]


BATCH = (
    '<action>search_library {"query": "third tower"}</action>\n'
    '<action>calculate {"expression": "1759 - 1756"}</action>\n'
    '<action>calculate {"expression": "1 / 0"}</action>'
)


async def test_several_calls_of_one_action_are_one_record_that_is_pruned_as_a_whole(
    shared_platform: Platform, tmp_path: Path
) -> None:
    written = (BATCH, *PLAIN[1:])
    ended = await run_question(shared_platform, tmp_path, *(Completion(text=text) for text in written), form="text")
    results = [s for s in await shared_platform.steps(ended.id) if s.kind is StepKind.TOOL_RESULT and s.turn == 1]
    numbered = sorted(results, key=lambda step: step.payload["batch"]["number"])
    segments_of_run = await stored(shared_platform, ended.id)
    assert [(s.payload["tool"], s.payload["status"]) for s in numbered] == [
        ("search_library", "ok"),
        ("calculate", "ok"),
        ("calculate", "failed"),
    ]
    assert [[t.completion for t in s.role_calls] for s in segments_of_run] == [list(written[:2]), list(written[2:])]
    assert [s.kind for s in segments_of_run[0].role_calls[0].spans] == [SpanKind.ACTION] * 3
    assert (await reported(shared_platform, ended)).citations
    replayed = await replay_run(shared_platform.database, shared_platform.tenant, ended.id, open_registry())
    assert replayed.is_same, replayed.detail


async def test_at_the_turn_limit_after_several_calls_the_answer_of_the_last_call_is_the_report(
    shared_platform: Platform, tmp_path: Path
) -> None:
    written = (*[BATCH] * 5, PLAIN[3])
    ended = await run_question(shared_platform, tmp_path, *(Completion(text=text) for text in written), form="text")
    report = await reported(shared_platform, ended)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.TURN_LIMIT, 5)
    assert report.written_by == "openai/stand-in"
    assert report.answer
    assert report.answer.text == "Smeaton built it."


@pytest.fixture
async def bench(owner_url: str, app_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(offing.kernel.journal, "RETRY_SECONDS", 0.005)
    monkeypatch.setattr(offing_workers.slice, "REOPEN_DELAY_SECONDS", 0.005)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        async with Database(app_url, max_connections=4) as database:
            yield Bench(owner, app_url, database)


async def left_by(bench: Bench, at: int, when: When, what: What) -> tuple[checker.Rows, int]:
    """What a run leaves that was disturbed at its nth transaction, 0 for none; and how many transactions it began."""
    request = oracle(FOUR, "text")
    run = (await submit_run(bench.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(ALL_GRAPHS))).run.id
    async with Disturbed(bench.app_url, maximum=4) as database:
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
        results = [*checker.violations(rows), *differences(rows, plain)]
        if shape(rows) != shape(plain):
            results.append(f"steps {shape(rows)}, undisturbed {shape(plain)}")
        wrong += [f"{what} {when} transaction {at}: {complaint}" for complaint in results]
    assert not wrong, "\n".join(wrong)
