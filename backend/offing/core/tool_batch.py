"""Batches: tool calls that a node makes at the same time.

Each result is recorded when its call ends, so that a crash repeats no finished call. What a run has
retrieved follows the order of the calls instead, which does not depend on how long each of them takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.step import Step

BATCH = "batch"
"""Payload key of a tool result that belongs to a batch."""


@dataclass(frozen=True, slots=True)
class BatchPosition:
    """The position of a call in its batch."""

    batch_id: str
    """Id of the batch within the run."""
    number: int
    """Number of the call, from 1."""
    size: int
    """Number of calls in the batch, at least two."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that the payload of a step has for the position."""
        return {BATCH: {"id": self.batch_id, "number": self.number, "size": self.size}}


def parse_batch_position(payload: Mapping[str, Any]) -> BatchPosition | None:
    """Return the position that a payload records. `None` means that the call was made alone."""
    stored = payload.get(BATCH)
    return BatchPosition(stored["id"], stored["number"], stored["size"]) if stored else None


class BatchSorter:
    """Puts tool results in the order of their calls.

    The results of a batch come together, as soon as the last one is added. Every other result comes at once.
    """

    def __init__(self) -> None:
        self._incomplete: dict[str, dict[int, Step]] = {}
        self._complete = set[str]()

    def add(self, step: Step) -> Sequence[Step]:
        """Add a result in the order of the record, and return the results that come next. Repetitions are ignored."""
        position = parse_batch_position(step.payload)
        if position is None:
            return (step,)
        if position.batch_id in self._complete:
            return ()
        results = self._incomplete.setdefault(position.batch_id, {})
        results[position.number] = step
        if len(results) < position.size:
            return ()
        self._complete.add(position.batch_id)
        return _sort_by_number(self._incomplete.pop(position.batch_id))

    def take_rest(self) -> Sequence[Step]:
        """Return the results of batches whose other calls have not ended, for a run that makes no more calls."""
        batches, self._incomplete = self._incomplete, {}
        return [step for results in batches.values() for step in _sort_by_number(results)]


def order_tool_results(steps: Iterable[Step]) -> Sequence[Step]:
    """Return the recorded tool results of an ended run in the order of their calls."""
    sorter = BatchSorter()
    ordered = [step for one in steps for step in sorter.add(one)]
    return [*ordered, *sorter.take_rest()]


def _sort_by_number(results: Mapping[int, Step]) -> Sequence[Step]:
    return [results[number] for number in sorted(results)]
