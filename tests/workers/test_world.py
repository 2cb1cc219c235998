"""Runs that are set in a made-up world, through a real worker: they have its tools, and not the library's."""

from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from offing.world.semantics import TOOLS
from offing.world.tasks import WorldTask, tasks
from tests.workers.conftest import Platform

WORLD = "heldout-8@small"

ORACLE = {
    "planner": EngineChoice(engine="rules", model="oracle"),
    **{role: EngineChoice(engine="rules", model="world") for role in ("analyst", "executor", "verifier", "generator")},
}


async def answered(platform: Platform, task: WorldTask) -> tuple[str, set[str]]:
    """What the run answers, and the tools that it was given."""
    request = RunRequest(task.question, budget=Budget(turns=8), engines=ORACLE, scope=task.scope)
    row = await platform.ended((await platform.submit(request)).id)
    assert row.status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, row.id)
    used = {s.payload["tool"] for s in await platform.steps(row.id) if s.kind is StepKind.TOOL}
    assert report is not None
    return report.answer.text if report.answer else "", used


async def test_questions_of_a_world_are_answered_with_its_tools(standing: Platform) -> None:
    for task in tasks(WORLD, count=5, hops=(2, 4)):
        said, used = await answered(standing, task)
        assert said == (task.answers or ("not answerable",))[0]
        assert used
        assert used <= set(TOOLS)
