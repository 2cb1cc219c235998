"""The calls of a run that are on record, as an epoch of a claim takes them up."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from offing.core.errors import ReplayDiverged
from offing.core.report import Report
from offing.core.step import CallKey, Step
from offing.kernel.call_key import Call
from offing.sdk import Role


class RecordedCalls(Protocol):
    """What the journal reads recorded results from."""

    @property
    def count(self) -> int:
        """Calls that are on record and were not taken up."""
        ...

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        """Return what was recorded for a call, once. Raises ReplayDiverged for a step of another kind."""
        ...

    def revealed(self, step: Step) -> Sequence[Step]:
        """Return the steps that the run sees from now on, since it has taken up this one."""
        ...

    def check_new(self, call: Call) -> None:
        """A call that is not on record is about to be made. Raises where it must not be."""
        ...

    @property
    def compares(self) -> bool:
        """Whether recorded calls are compared with what the graph does now, beyond their keys."""
        ...

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """Compare the prompt of a recorded role call with what the role renders now. Raises where they differ."""
        ...

    def compare_report(self, report: Report, step: Step) -> None:
        """Compare a recorded report with the one that the graph delivers now. Raises where they differ."""
        ...


class CallsSinceCheckpoint:
    """What earlier claims recorded after the checkpoint that this one starts from."""

    def __init__(self, steps: Mapping[CallKey, Step]) -> None:
        self._steps = dict(steps)

    @property
    def count(self) -> int:
        return len(self._steps)

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        step = self._steps.pop(call.key, None)
        if step is not None and step.kind not in expected:
            wanted = ", ".join(sorted(expected))
            raise ReplayDiverged(f"{call.key} recorded {step.kind}; the node now asks for {wanted}.")
        return step

    def revealed(self, step: Step) -> Sequence[Step]:
        """Nothing: all that is on record is seen from the beginning."""
        return ()

    def check_new(self, call: Call) -> None:
        """A call that the record does not have is made."""

    @property
    def compares(self) -> bool:
        return False

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """What is on record holds."""

    def compare_report(self, report: Report, step: Step) -> None:
        """What is on record holds."""
