"""Runs of the plain graphs, and what they left."""

from uuid import UUID

from offing.core.report import Report
from offing.core.step import Step, StepKind
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage import reports, segments
from offing.storage.runs import RunRow
from offing.storage.segments import StoredTurn
from tests.workers.conftest import Platform
from tests.workers.plain_scripts import GRAPHS


async def started(platform: Platform, request: RunRequest) -> RunRow:
    submitted = await submit(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return submitted.run


async def report_of(platform: Platform, run: UUID) -> Report:
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run)
    assert report is not None
    return report


async def answer_of(platform: Platform, run: UUID) -> str:
    answer = (await report_of(platform, run)).answer
    return answer.text if answer else ""


async def turns_of(platform: Platform, run: UUID) -> list[StoredTurn]:
    async with platform.database.transaction(platform.tenant) as connection:
        return await segments.turns_of(connection, run)


def model_calls(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.kind is StepKind.TURN]


def prompts(turns: list[StoredTurn]) -> list[tuple[str, ...]]:
    """Role and words of each prompt, in a steady order."""
    return sorted((turn.role, *(m.text for m in turn.messages)) for turn in turns)
