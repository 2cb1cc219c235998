"""Runs of the LangGraph graphs, and what they left."""

from uuid import UUID

from offing.core.report import Report
from offing.core.step import Step, StepKind
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import reports, segments
from offing.storage.runs import RunRow
from offing.storage.segments import StoredRoleCall
from tests.workers.conftest import Platform
from tests.workers.langgraph_scripts import GRAPHS


async def started(platform: Platform, request: RunRequest) -> RunRow:
    submitted = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(GRAPHS)
    )
    return submitted.run


async def report_of(platform: Platform, run_id: UUID) -> Report:
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run_id)
    assert report is not None
    return report


async def answer_of(platform: Platform, run_id: UUID) -> str:
    answer = (await report_of(platform, run_id)).answer
    return answer.text if answer else ""


async def turns_of(platform: Platform, run_id: UUID) -> list[StoredRoleCall]:
    async with platform.database.transaction(platform.tenant) as connection:
        return await segments.read_role_calls(connection, run_id)


def model_calls(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.kind is StepKind.ROLE_CALL]


def prompts(turns: list[StoredRoleCall]) -> list[tuple[str, ...]]:
    """Role and words of each prompt, in a steady order."""
    return sorted((turn.role, *(m.text for m in turn.messages)) for turn in turns)
