"""What a run retrieved and calculated, read from its tool results for scoring."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from offing.core.calculation import find_calculation
from offing.core.evidence import EvidenceIndex
from offing.core.provenance import parse_label
from offing.core.report import Evidence
from offing.core.step import Step, StepKind
from offing.core.tool_batch import BatchSorter
from offing.storage import steps
from offing.storage.pool import Connection

MAX_STEPS_PER_QUERY = 200


@dataclass(frozen=True, slots=True)
class RecordedResults:
    retrieved: tuple[Evidence, ...] = ()
    """The passages, each once, in the order of the calls and of the results of a call."""
    calculations: tuple[str, ...] = ()


async def read_recorded_results(connection: Connection, run_id: UUID) -> RecordedResults:
    """Read the tool results of a run."""
    evidence, calculations = EvidenceIndex(), list[str]()
    async for step in _iter_tool_results(connection, run_id):
        evidence.add(step.payload["content"], parse_label(step.payload), step.seq)
        if (result := find_calculation(step.payload)) is not None:
            calculations.append(result)
    return RecordedResults(tuple(evidence.as_dict().values()), tuple(calculations))


async def _iter_tool_results(connection: Connection, run_id: UUID) -> AsyncIterator[Step]:
    """Yield the tool results in the order of their calls."""
    sorter = BatchSorter()
    async for step in _iter_recorded_results(connection, run_id):
        for result in sorter.add(step):
            yield result
    for result in sorter.take_rest():
        yield result


async def _iter_recorded_results(connection: Connection, run_id: UUID) -> AsyncIterator[Step]:
    after_seq = 0
    while True:
        page = await steps.list_steps_of_kinds(
            connection, run_id, [StepKind.TOOL_RESULT], after_seq, MAX_STEPS_PER_QUERY
        )
        for step in page:
            yield step
        if len(page) < MAX_STEPS_PER_QUERY:
            return
        after_seq = page[-1].seq
