"""Runs and the versions of their graphs, on real workers: one that is kept, and one that is gone and carried over."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.input_request import InputResponse
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.sdk import RunInfo
from offing.services.forks import ForkRequest, fork_run
from offing.services.graphs import GraphRegistry
from offing.services.runs import RunRequest, submit_run
from offing.storage import reports
from offing_workers.graph_upgrade import upgrade_state
from tests.workers.conftest import Platform, StartWorker
from tests.workers.graphs import counting
from tests.workers.parent_graph import question_for
from tests.workers.processes import Worker
from tests.workers.rollout_batches import Sql
from tests.workers.test_wait_conditions import list_responses, respond, waiting

TURNS = 8
PROJECT = '[project.entry-points."offing.graphs"]\nledger = "ledger:graph"\n'
FIRST = """
from dataclasses import replace
from tests.workers.graphs import counting
graph = replace(counting, name="ledger")
"""
SECOND = """
from dataclasses import replace
from langgraph.graph import END, START
from offing.sdk import DraftSection, ReportDraft, RunContext, StopReason
from tests.workers.graphs import Count, act, counting, speak, untyped, _unless_stopped

class Paged(Count):
    pages: int

async def write(state, runtime):
    title = f"{state['pages']} pages"
    await runtime.context.submit_report(ReportDraft(title=title, sections=()), StopReason.ANSWERED)
    return {}

def build():
    graph = untyped(Paged, context_schema=RunContext)
    graph.add_node("speak", speak)
    graph.add_node("act", act)
    graph.add_node("write", write)
    graph.add_edge(START, "speak")
    graph.add_conditional_edges("speak", _unless_stopped("act"), ["write", "act"])
    graph.add_conditional_edges("act", _unless_stopped("speak"), ["write", "speak"])
    graph.add_edge("write", END)
    return graph

def start(run):
    return {"turn": 0, "last": 0, "stop": "", "pages": 0}

def upgrade(version, state):
    return %s

graph = replace(counting, name="ledger", build=build, initial_state=start, upgrade_state=upgrade)
"""
CARRIED = '{**state, "pages": 100 + state["turn"]}'


def written(folder: Path, code: str) -> Path:
    (folder / "ledger").mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "ledger/__init__.py").write_text(code)
    return folder


class VersionFolder:
    """A folder with the graph, and homes in which versions are kept."""

    def __init__(self, folder: Path, platform: Platform, start: StartWorker) -> None:
        self.folder, self._platform, self._start = folder, platform, start
        written(folder / "source", FIRST)

    def worker(self, home: str) -> Worker:
        return self._start(OFFING_GRAPH_PATHS=str(self.folder / "source"), OFFING_HOME=str(self.folder / home))

    async def begun(self, question: str = "Count", *, speaks: bool = True) -> UUID:
        """A run of the first version."""
        graphs = GraphRegistry(paths=str(self.folder / "source"), data_dir=self.folder / "first")
        slowly = EngineConfig(engine="scripted", options={"answers": [{"word": "word {turn}"}], "delay_ms": 500})
        request = RunRequest(
            question, "ledger", budget=Budget(max_turns=TURNS), engines={"speaker": slowly} if speaks else {}
        )
        p = self._platform
        run = (await submit_run(p.database, p.notifier, p.tenant, request, graphs=graphs)).run.id
        return run

    async def title(self, run_id: UUID) -> str:
        async with self._platform.database.transaction(self._platform.tenant) as connection:
            report = await reports.find_latest_report(connection, run_id)
        assert report is not None
        return report.title


@pytest.fixture
def versions(tmp_path: Path, platform: Platform, start_worker: StartWorker) -> VersionFolder:
    return VersionFolder(tmp_path, platform, start_worker)


async def interrupted(platform: Platform, versions: VersionFolder, leave: Callable[[Worker], Any]) -> UUID:
    """A run whose worker has left it in the middle."""
    first, run = versions.worker("first"), await versions.begun()
    await platform.until(run, lambda row: row.usage.turns >= 3)
    leave(first)
    return run


async def words(platform: Platform, run_id: UUID) -> list[str]:
    return [s.payload["output"]["word"] for s in await platform.steps(run_id) if s.kind is StepKind.PLAN]


async def test_a_run_keeps_its_version_after_its_folder_has_changed(
    platform: Platform, versions: VersionFolder
) -> None:
    run = await interrupted(platform, versions, Worker.finish)
    written(versions.folder / "source", SECOND % CARRIED)
    versions.worker("first")
    ended = await platform.ended(run)
    assert ended.status is RunStatus.DONE
    assert await versions.title(run) == "Count"
    assert await words(platform, run) == [f"word {n}" for n in range(1, TURNS + 1)]


async def test_a_run_whose_version_is_deleted_continues_in_the_new_one(
    platform: Platform, versions: VersionFolder
) -> None:
    run = await interrupted(platform, versions, Worker.kill)
    old = (await platform.run(run)).graph_version
    written(versions.folder / "source", SECOND % CARRIED)
    versions.worker("second")
    ended = await platform.ended(run)
    carried = [s.payload for s in await platform.steps(run) if s.payload.get("after") == "upgrade"]
    assert ended.status is RunStatus.DONE, ended.error
    assert [(c["from"], c["to"]) for c in carried] == [(old, ended.graph_version)]
    assert int((await versions.title(run)).split()[0]) in range(102, 100 + TURNS)
    assert set(await words(platform, run)) == {f"word {n}" for n in range(1, TURNS + 1)}


async def test_a_run_that_was_carried_over_is_forked_in_the_version_that_it_had_at_the_step(
    platform: Platform, versions: VersionFolder
) -> None:
    run = await interrupted(platform, versions, Worker.kill)
    written(versions.folder / "source", SECOND % CARRIED)
    second = versions.worker("second")
    await platform.ended(run)
    second.finish()
    record = await platform.steps(run)
    upgrade = next(step.seq for step in record if step.payload.get("after") == "upgrade")
    graphs = GraphRegistry(paths=str(versions.folder / "source"), data_dir=versions.folder / "first")
    versions.worker("first")
    for at, title in ((upgrade - 1, "Count"), (upgrade + 3, await versions.title(run))):
        request, p = ForkRequest(run, at), platform
        created = (await fork_run(p.database, p.notifier, p.tenant, request, graphs=graphs)).run
        ended = await platform.ended(created.id)
        assert ended.status is RunStatus.DONE, ended.error
        assert await versions.title(created.id) == title
        steps = await platform.steps(created.id)
        assert [s.payload for s in steps[:at]] == [s.payload for s in record[:at]]
        assert not [s for s in steps[at:] if s.payload.get("after") == "upgrade"]
        assert set(await words(platform, created.id)) == {f"word {n}" for n in range(1, TURNS + 1)}


async def test_a_run_that_cannot_be_carried_over_waits_and_says_why(
    platform: Platform, versions: VersionFolder
) -> None:
    run = await interrupted(platform, versions, Worker.finish)
    before = await platform.run(run)
    written(versions.folder / "source", SECOND % "None")
    versions.worker("second")
    waiting = await platform.until(run, lambda row: row.status is RunStatus.WAITING)
    assert waiting.waiting_for is not None
    assert waiting.waiting_for.endswith("; with the version installed here, its upgrade function rejected the state")
    assert waiting.graph_version == before.graph_version


ASKING_GRAPH = """
from dataclasses import replace
from tests.workers.input_graphs import branching
graph = replace(branching, name="ledger", upgrade_state=lambda version, state: {"heard": ["carried", *state["heard"]]})
"""


async def test_a_run_whose_branches_ask_is_carried_over_and_nobody_is_asked_again(
    platform: Platform, versions: VersionFolder
) -> None:
    written(versions.folder / "source", ASKING_GRAPH)
    first, run = versions.worker("first"), await versions.begun(speaks=False)
    right, left = await waiting(platform, run, "Right?"), await waiting(platform, run, "Left?")
    first.finish()
    written(versions.folder / "source", ASKING_GRAPH + "SECOND = True")
    versions.worker("second")
    await respond(platform, run, right, InputResponse(text="r"))
    await respond(platform, run, left, InputResponse(text="l"))
    assert await list_responses(platform, run) == ["carried", "left l", "quiet", "right 42 r"]
    kinds = [step.kind for step in await platform.steps(run)]
    assert [kinds.count(kind) for kind in (StepKind.INPUT_REQUEST, StepKind.TOOL_RESULT, StepKind.NOTE)] == [2, 1, 1]


PARENT = """
from dataclasses import replace
from tests.workers.parent_graph import family
graph = replace(family, name="ledger", upgrade_state=lambda version, state: state)
"""


async def test_a_run_that_waits_for_its_child_is_carried_over_and_starts_no_other(
    platform: Platform, versions: VersionFolder, sql: Sql
) -> None:
    written(versions.folder / "source", PARENT)
    first, run = versions.worker("first"), await versions.begun(question_for({"question": "one", "turns": 4}))
    await platform.until(run, lambda row: row.status is RunStatus.WAITING)
    first.finish()
    written(versions.folder / "source", PARENT + "SECOND = True")
    versions.worker("second")
    assert (await list_responses(platform, run))[0] == "one: done, answered, 4 said"
    assert any(step.payload.get("after") == "upgrade" for step in await platform.steps(run))
    assert sql("select count(*) from app.child_run where parent_id = %s", run) == [(1,)]


UPGRADES: list[tuple[Callable[[str, dict[str, Any]], Any], Any]] = [
    (lambda version, state: {"turn": state["turn"]}, "its upgrade function returned wrong or missing keys: last, stop"),
    (lambda version, state: 1 / 0, "its upgrade function raised ZeroDivisionError: division by zero"),
    (lambda version, state: {**state, "last": object()}, "its upgrade function raised TypeError"),
    (lambda version, state: state, {"turn": 3, "last": 7, "stop": ""}),
]


@pytest.mark.parametrize(("upgrade", "message"), UPGRADES)
def test_what_an_upgrade_gives_is_checked(upgrade: Any, message: Any) -> None:
    run = RunInfo(UUID(int=1), "Count")
    result = upgrade_state(replace(counting, upgrade_state=upgrade), run, "old", {"turn": 3, "last": 7, "stop": ""})
    assert result == message or (isinstance(result, str) and result.startswith(message))
