"""Runs that are set in a synthetic world, through a real worker: they have its tools, and not the library's."""

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from offing_world.semantics import TOOLS
from offing_world.tasks import WorldTask, generate_tasks
from tests.workers.conftest import Platform

WORLD = "heldout-8@small"

ORACLE = {
    "planner": EngineConfig(engine="rules", model="oracle"),
    **{role: EngineConfig(engine="rules", model="world") for role in ("analyst", "executor", "verifier", "generator")},
}


async def answered(platform: Platform, task: WorldTask) -> tuple[str, set[str]]:
    """What the run answers, and the tools that it was given."""
    request = RunRequest(task.question, budget=Budget(max_turns=8), engines=ORACLE, scope=task.scope)
    row = await platform.ended((await platform.submit(request)).id)
    assert row.status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, row.id)
    used = {s.payload["tool"] for s in await platform.steps(row.id) if s.kind is StepKind.TOOL_RESULT}
    assert report is not None
    return report.answer.text if report.answer else "", used


async def test_questions_of_a_world_are_answered_with_its_tools(shared_platform: Platform) -> None:
    for task in generate_tasks(WORLD, count=5, hops=(2, 4)):
        text, used = await answered(shared_platform, task)
        assert text == (task.answers or ("not answerable",))[0]
        assert used
        assert used <= set(TOOLS)
