"""What a suspended run needs before it continues: a person's response, or child runs.

A node waits by raising LangGraph's `GraphInterrupt` with a `Waits` value (`wait`); its siblings finish, and the slice
releases the run as waiting. The value travels in memory alone and is never stored: a node that is run again reads its
calls back, asks for the same thing, and continues or waits again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast
from uuid import UUID

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from offing.kernel.checkpointer import RAISED_ANEW


@dataclass(frozen=True, slots=True)
class ForPerson:
    """Answers of people. The run goes on as soon as one of them is there."""

    questions: tuple[int, ...]
    """Numbers of the questions, which are the seqs of their steps."""


@dataclass(frozen=True, slots=True)
class ForRuns:
    """Runs that this one started. It goes on when all of them have ended."""

    runs: tuple[UUID, ...]


Waits = ForPerson | ForRuns


@dataclass(frozen=True, slots=True)
class Awaited:
    """Everything that the branches of a superstep wait for."""

    questions: tuple[int, ...] = ()
    runs: tuple[tuple[UUID, ...], ...] = ()
    """What each branch waits for; each is there when all of its runs have ended."""
    interrupts: tuple[Interrupt, ...] = ()
    """What the graph raised itself, by `interrupt`."""

    @property
    def of_people(self) -> bool:
        return bool(self.questions or self.interrupts)

    @property
    def words(self) -> str:
        """For people: what the run waits for."""
        started = sum(len(each) for each in self.runs)
        asked = len(self.questions) + len(self.interrupts)
        parts = [f"{asked} answers of a person" if asked > 1 else "a person's answer"] if asked else []
        parts += [f"{started} runs that it started" if started > 1 else "a run that it started"] if started else []
        return " and ".join(parts)


def wait(waits: Waits) -> NoReturn:
    """Leave the running node until what it waits for is there. It is run again from its beginning."""
    raise GraphInterrupt((Interrupt(value=waits, id=RAISED_ANEW),))


def raised_in(updates: Any) -> tuple[Interrupt, ...]:
    """The interrupts among what a graph's run gave out as updates. Empty: it has ended."""
    found: list[Any] = []
    for update in updates:
        if isinstance(update, dict):
            found.extend(cast(dict[str, Any], update).get("__interrupt__", ()))
    return tuple(found)


def awaited(interrupts: Sequence[Interrupt]) -> Awaited:
    """What a superstep was interrupted for."""
    ours: list[Any] = [i.value for i in interrupts]
    return Awaited(
        tuple(number for value in ours if isinstance(value, ForPerson) for number in value.questions),
        tuple(value.runs for value in ours if isinstance(value, ForRuns)),
        tuple(i for i in interrupts if not isinstance(i.value, ForPerson | ForRuns)),
    )
