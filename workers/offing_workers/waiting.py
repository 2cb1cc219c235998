"""How a run waits for something outside it without a worker: a person's answer, or runs that it started.

The only home of what a waiting run waits for and of when that is there. A node waits by raising LangGraph's
`GraphInterrupt` with a `Waits` value (`wait`); its siblings finish, and the slice hands the run back as waiting. The
value travels in memory alone and is never stored: a node that is run again reads its calls back, asks for the same
thing, and goes on or waits again. Whoever makes the thing be there queues the run in the same transaction. It locks
the run's row first (`runs.locked`, `runs.queue_waiting`) and looks afterwards, in a statement of its own, because the
hand-back does so too: one of the two sees the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast
from uuid import UUID

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from offing.core.run import CancelMode, RunStatus
from offing.kernel.checkpointer import RAISED_ANEW
from offing.storage import questions, runs
from offing.storage.pool import Connection
from offing.storage.runs import Release


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


async def release(connection: Connection, run: UUID, wanted: Awaited, *, told_to_write: bool) -> Release:
    """How to hand back a run that waits, decided in the transaction that does it and holds the run's row.

    `told_to_write`: this slice knew that it should write. A wish that came since must not wait with the run.
    """
    wish = await runs.wish(connection, run)
    if wish.cancel is CancelMode.DISCARD or (wish.cancel is CancelMode.WRITE and not told_to_write):
        return Release(RunStatus.QUEUED)
    if wish.pause:
        return Release(RunStatus.PAUSED, waiting_for="a person to resume it")
    if await _is_there(connection, run, wanted):
        return Release(RunStatus.QUEUED)
    return Release(RunStatus.WAITING, waiting_for=wanted.words, wait_seconds=await _patience(connection, run, wanted))


async def _is_there(connection: Connection, run: UUID, wanted: Awaited) -> bool:
    """Whether one branch can go on already."""
    raised = [interrupt.id for interrupt in wanted.interrupts]
    if wanted.of_people and await questions.some_answered(connection, run, wanted.questions, raised):
        return True
    for started in wanted.runs:
        if await runs.all_ended(connection, started):
            return True
    return False


async def _patience(connection: Connection, run: UUID, wanted: Awaited) -> float | None:
    """Seconds after which the run looks again by itself: a default falls due, or the run's deadline passes."""
    if not wanted.of_people:
        return None
    left = [await questions.until_due(connection, run), await runs.until_deadline(connection, run)]
    return max(0.0, min(known)) if (known := [seconds for seconds in left if seconds is not None]) else None
