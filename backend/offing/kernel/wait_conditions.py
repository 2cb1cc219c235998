"""Wait conditions: what a suspended run needs before it continues, an input response or child runs.

A node waits by raising LangGraph's `GraphInterrupt` with a `WaitCondition` (`suspend_node`). Its
siblings finish, and the slice releases the run with the status waiting. The condition is never
stored. A node that runs again reads its calls back, makes the same request, and continues or waits
again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast
from uuid import UUID

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from offing.kernel.checkpointer import TRANSIENT_INTERRUPT_ID


@dataclass(frozen=True, slots=True)
class HumanInputWait:
    """Waits for input responses. The run continues as soon as one of them exists."""

    request_numbers: tuple[int, ...]
    """Numbers of the input requests, which are the `seq` values of their steps."""


@dataclass(frozen=True, slots=True)
class ChildRunsWait:
    """Waits for child runs. The run continues when all of them have ended."""

    run_ids: tuple[UUID, ...]


WaitCondition = HumanInputWait | ChildRunsWait


@dataclass(frozen=True, slots=True)
class PendingWaits:
    """Everything that the branches of a superstep wait for."""

    request_numbers: tuple[int, ...] = ()
    run_id_groups: tuple[tuple[UUID, ...], ...] = ()
    """The child runs of each waiting branch. A branch can continue when all of its child runs have ended."""
    interrupts: tuple[Interrupt, ...] = ()
    """Interrupts that the graph raised itself, by `interrupt`."""

    @property
    def needs_human_input(self) -> bool:
        return bool(self.request_numbers or self.interrupts)

    @property
    def are_of_graph_alone(self) -> bool:
        """Whether the graph waits only for interrupts that it raised itself."""
        return bool(self.interrupts) and not (self.request_numbers or self.run_id_groups)

    @property
    def description(self) -> str:
        """A description of what the run waits for, for display."""
        started = sum(len(each) for each in self.run_id_groups)
        request_count = len(self.request_numbers) + len(self.interrupts)
        parts = (
            [f"{request_count} answers of a person" if request_count > 1 else "a person's answer"]
            if request_count
            else []
        )
        parts += [f"{started} child runs" if started > 1 else "a child run"] if started else []
        return " and ".join(parts)


def suspend_node(condition: WaitCondition) -> NoReturn:
    """Suspend the running node until the condition is met. The node then runs again from its beginning."""
    raise GraphInterrupt((Interrupt(value=condition, id=TRANSIENT_INTERRUPT_ID),))


def merge_interrupts(interrupts: Sequence[GraphInterrupt]) -> GraphInterrupt:
    """Return one interrupt for calls of a node that wait at the same time."""
    return GraphInterrupt(tuple(one for interrupt in interrupts for one in interrupt.args[0]))


def find_interrupts(updates: Any) -> tuple[Interrupt, ...]:
    """Return the interrupts in the streamed updates of a graph. Empty means that the graph has ended."""
    interrupts: list[Any] = []
    for update in updates:
        if isinstance(update, dict):
            interrupts.extend(cast(dict[str, Any], update).get("__interrupt__", ()))
    return tuple(interrupts)


def collect_waits(interrupts: Sequence[Interrupt]) -> PendingWaits:
    """Collect the wait conditions of interrupts."""
    ours: list[Any] = [i.value for i in interrupts]
    return PendingWaits(
        tuple(number for value in ours if isinstance(value, HumanInputWait) for number in value.request_numbers),
        tuple(value.run_ids for value in ours if isinstance(value, ChildRunsWait)),
        tuple(i for i in interrupts if not isinstance(i.value, HumanInputWait | ChildRunsWait)),
    )
