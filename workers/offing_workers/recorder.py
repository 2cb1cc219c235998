"""The recorder of a claim: every step of a slice goes through here, guarded, journalled, booked and shown.

The only home of call keys, whose place in the graph `places` tells. Survives an absence of Postgres: what is to be
written was often paid for, so it is tried until it is written, the run is somebody else's, or the slice is cancelled; a
lost answer is looked for first. Under durability `exit` appends stay in memory until the slice ends: their places are
foreseen, because nobody else writes to such a run while it is held, and proved when they are written.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any, Protocol
from uuid import UUID

import orjson
from pydantic import BaseModel

from offing.core.errors import Fenced, OffingError, ReplayDiverged, Unavailable
from offing.core.run import Fence, Spent
from offing.core.step import CallKey, Step, StepDraft, place_step
from offing.core.usage import UsageDelta
from offing.finishing import finished
from offing.storage import runs, spend, steps, turn_rows, turns
from offing.storage.pool import Connection, Database
from offing.storage.steps import AlreadyRecorded
from offing.storage.turn_rows import TurnRow
from offing.telemetry.redaction import without_secrets
from offing_workers.places import Places
from offing_workers.recollection import Recollection

RETRY_PAUSE = 0.1
"""Seconds between tries while Postgres is away."""

NOTHING = Decimal(0)

ASKED = "#"
"""In a key's path before the digest of what was asked."""

Also = Callable[[Connection, list[Step]], Awaitable[None]]
"""What else belongs in the transaction of an append."""

Behind = Callable[[Sequence[Step]], list[TurnRow]]
"""The turns behind the steps of an append."""


class Viewers(Protocol):
    """Whoever watches runs live. Never raises."""

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step], /) -> None: ...

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None: ...


class Checkpoints(Protocol):
    """Where the graph stands: checkpoints that may be written together with the next append."""

    async def save(self, connection: Connection) -> Any:
        """Write what is due, in the caller's transaction, and say what that was. Raises Fenced."""
        ...

    def saved(self, due: Any) -> None:
        """That transaction was committed."""
        ...


@dataclass(frozen=True, slots=True)
class Doubtful:
    """An append that was cut off before it was known whether it had been committed."""

    drafts: tuple[StepDraft, ...]
    left: int
    used: Mapping[CallKey, UsageDelta]
    """By calls."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Unwritten:
    """An append that waits for the end of the slice."""

    drafts: tuple[StepDraft, ...]
    steps: tuple[Step, ...]
    """The same in the places that they will have."""
    left: int
    """How many of them come first and are not what `also` is about."""
    also: Also | None
    turns: list[TurnRow]


class Recorder:
    """Appends for one epoch of a claim. `journal`: what is recorded after the checkpoint that it starts from.

    `at_exit`: write nothing before `close`.
    """

    def __init__(
        self,
        database: Database,
        viewers: Viewers,
        fence: Fence,
        *,
        term: float,
        journal: dict[CallKey, Step],
        spent: Spent,
        recollection: Recollection,
        checkpoints: Checkpoints,
        monotonic: Callable[[], float],
        at_exit: bool = False,
        places: Places | None = None,
        by_content: bool = False,
    ) -> None:
        """`by_content`: what is asked belongs to a call's key, for graphs that promise no order of their calls."""
        self._places, self._by_content = places or Places(), by_content
        self._database, self._viewers, self.fence, self.term = database, viewers, fence, term
        self._journal, self._ordinals = journal, Counter[tuple[int, str]]()
        self._monotonic, self._booked_at = monotonic, monotonic()
        self._spent = spent
        self._unbooked: dict[CallKey, UsageDelta] = {}
        """What each call used. It is written with the call's own step: with another's, it would be counted again by the
        worker that makes the call anew. What has no step is written at the end."""
        self._adopted: dict[CallKey, int] = {}
        """Turns of runs that this one started: without the step that records it, such a run is counted by the next
        claim."""
        self._without_step = set[CallKey]()
        """Calls that will have none; what they used goes with the next append."""
        self._unbooked_seconds = 0.0
        self.recollection, self._checkpoints = recollection, checkpoints
        self._waiting: list[StepDraft] = []
        self._at_exit = at_exit
        self._unwritten: list[Unwritten] = []
        self._calls_over, self._retired = False, False
        self._doubtful: Doubtful | None = None
        self._saving: Any = ()
        """Checkpoints that the latest try took along."""
        self._written = 0
        """Appends that were committed."""
        self._stored_seq = recollection.last_seq
        """The run's last step that is known to be stored."""
        self._unshown: list[Step] = []
        """Steps that were committed and that viewers have not been told of."""
        self._writing = asyncio.Lock()
        """One append at a time: a checkpoint goes with any of them, and what was left before it must not come after."""

    @property
    def spent(self) -> Spent:
        """Totals of the run, what is not yet written included."""
        return replace(self._spent, seconds=self._spent.seconds + self._monotonic() - self._booked_at)

    @property
    def has_written(self) -> bool:
        """Something of this claim is stored."""
        return self._written > 0

    def begin_turn(self, number: int) -> bool:
        """Count a turn. False: it had been counted before a loss."""
        self.check()
        if number <= self._spent.turns:
            return False
        self._spent = replace(self._spent, turns=number)
        return True

    def book(
        self, key: CallKey, tokens: int, usd: Decimal, released: Decimal = NOTHING, day: date | None = None
    ) -> None:
        """Tokens and money that a call used, and what had been set aside for it; written with its step."""
        self._spent = replace(self._spent, tokens=self._spent.tokens + tokens, usd=self._spent.usd + usd)
        self._note_used(key, UsageDelta(tokens=tokens, usd=usd, released=released, day=day))

    def adopt(self, key: CallKey, spent: Spent) -> None:
        """Count what a run that this one started has used; written with the step that records its end."""
        mine = self._spent
        self._spent = Spent(
            mine.turns + spent.turns, mine.tokens + spent.tokens, mine.usd + spent.usd, mine.seconds + spent.seconds
        )
        used = UsageDelta(tokens=spent.tokens, inherited=spent.usd, seconds=spent.seconds)
        self._adopted[key] = spent.turns
        self._note_used(key, used)

    def leave_without_step(self, key: CallKey) -> None:
        """A call was given up, while its node may go on. What it used was paid all the same."""
        if key in self._unbooked:
            self._without_step.add(key)

    def _note_used(self, key: CallKey, used: UsageDelta) -> None:
        self._unbooked[key] = self._unbooked.get(key, UsageDelta()) + used

    def next_key(self, *asked: Any) -> CallKey:
        """The key of the append that the running node makes now. `asked`: what it is about."""
        superstep, path = self._places.here()
        if self._by_content:
            path = f"{path}{ASKED}{_digest(asked)}"
        return self._numbered(superstep, path)

    def key_beside(self, *said: Any) -> CallKey:
        """The key of what the graph gives out beside its nodes while its superstep is under way."""
        return self._numbered(self._places.latest, f"beside{ASKED}{_digest(said)}")

    def _numbered(self, superstep: int, path: str) -> CallKey:
        self.check()
        ordinal = self._ordinals[superstep, path]
        self._ordinals[superstep, path] += 1
        return CallKey(superstep, path, ordinal)

    @property
    def by_content(self) -> bool:
        """Calls are told apart by what they ask, for a graph that is written for LangGraph alone."""
        return self._by_content

    def recorded(self, key: CallKey, expected: frozenset[str]) -> Step | None:
        """What was recorded under a key before a loss. Raises ReplayDiverged if it is of none of the expected kinds."""
        self.check()
        step = self._journal.pop(key, None)
        if step is not None and step.kind not in expected:
            raise ReplayDiverged(f"{key} recorded {step.kind}; the node now asks for {', '.join(sorted(expected))}.")
        return step

    def leave(self, draft: StepDraft) -> None:
        """Append later: with the next append, in its transaction. Lost with it, it is made again by the same node."""
        self.check()
        self._waiting.append(_clean(draft))

    async def settle(self) -> None:
        """Append now what was left for later."""
        if self._waiting:
            await self.append()

    async def append(self, *drafts: StepDraft, also: Also | None = None, behind: Behind | None = None) -> list[Step]:
        """Append, and show; the steps of `drafts`. Raises Fenced when the run is no longer ours, or calls are over."""
        return await self._append(self.check, drafts, also, behind)

    def check(self) -> None:
        """Raises Fenced when the graph's calls are over: a branch that has outlived its graph does nothing any more."""
        if self._calls_over:
            raise Fenced("What called is no longer part of its run.")

    def end_calls(self) -> None:
        """The graph stands still; `close` alone may still write."""
        self._calls_over = True

    def retire(self) -> None:
        """The epoch is over, and so is this recorder."""
        self._calls_over = self._retired = True

    def _check_open(self) -> None:
        if self._retired:
            raise Fenced("This epoch of the claim is over.")

    async def _append(
        self,
        check: Callable[[], None],
        drafts: tuple[StepDraft, ...],
        also: Also | None = None,
        behind: Behind | None = None,
    ) -> list[Step]:
        try:
            async with self._writing:
                check()
                await self._look_back()
                left, self._waiting = tuple(self._waiting), []
                drafts = tuple(map(_clean, drafts))
                if self._at_exit:
                    new = self._foreseen((*left, *drafts), len(left), also, behind)
                else:
                    new = await self._booked((*left, *drafts), len(left), _with_turns(self.fence, also, behind))
            return new[len(left) :]
        finally:  # cancelled at its commit, an append is there all the same
            await self._show()

    async def close(self, *drafts: StepDraft, also: Also) -> None:
        """The claim's last append, with whatever waits for it, in one transaction that ends with `also`."""
        if self._waiting:
            await self._append(self._check_open, ())
        if not self._at_exit:
            await self._append(self._check_open, drafts, also)
            return
        await self._append(self._check_open, drafts)
        unwritten, self._unwritten = self._unwritten, []
        foreseen = [step for append in unwritten for step in append.steps]

        async def everything(connection: Connection, new: list[Step]) -> None:
            if [s.seq for s in new] != [s.seq for s in foreseen]:
                raise OffingError(f"Somebody else wrote to run {self.fence.run} while it was held.")
            async with connection.pipeline():  # one round trip for all of them
                if rows := [row for append in unwritten for row in append.turns]:
                    await turn_rows.insert(connection, self.fence, rows)
                for append in unwritten:
                    if append.also is not None:
                        await append.also(connection, list(append.steps[append.left :]))
            await also(connection, new[len(new) - len(drafts) :])

        try:
            await self._booked([d for append in unwritten for d in append.drafts], 0, everything)
        finally:
            await self._show()

    def _foreseen(
        self, drafts: tuple[StepDraft, ...], left: int, also: Also | None, behind: Behind | None
    ) -> list[Step]:
        """Keep an append for the end of the slice, and say which steps it will be."""
        first, at = self.recollection.last_seq + 1, datetime.now(UTC)
        new = [place_step(d, first + nth, at, self.fence.number) for nth, d in enumerate(drafts)]
        self._unwritten.append(Unwritten(drafts, tuple(new), left, also, behind(new[left:]) if behind else []))
        self.recollection.note(new)
        return new

    async def _booked(self, drafts: Sequence[StepDraft], left: int, also: Also | None) -> list[Step]:
        """Write the drafts, of which the first `left` were left for later, and book what was used."""
        used, seconds, written = self._taken(drafts), self._seconds_taken(), self._written
        turns = self._spent.turns - sum(turns for key, turns in self._adopted.items() if key in self._unbooked)
        booking = reduce(add, used.values(), UsageDelta(turns=turns, seconds=seconds))
        try:
            return await self._persist(drafts, left, also, booking)
        except BaseException as error:
            if self._written == written:  # cancelled at its commit, an append is there all the same
                taken = Doubtful(tuple(drafts), left, used, seconds)
                if isinstance(error, asyncio.CancelledError):
                    self._doubtful = taken
                else:
                    self._give_back(taken)
            raise

    def _give_back(self, taken: Doubtful) -> None:
        """What a failed append took along goes with a later one."""
        for key, used in taken.used.items():
            self._note_used(key, used)
        self._unbooked_seconds += taken.seconds
        self._waiting[:0] = taken.drafts[: taken.left]

    async def _look_back(self) -> None:
        """Find out what became of an append whose caller was cancelled before that was known."""
        if self._doubtful is not None:
            found = await self._already(self._doubtful.drafts)
            doubtful, self._doubtful = self._doubtful, None
            if found is None:
                self._give_back(doubtful)

    def _taken(self, drafts: Sequence[StepDraft]) -> dict[CallKey, UsageDelta]:
        """What is to be booked with these drafts; once calls are over, whatever was paid."""
        keys = {draft.key for draft in drafts if draft.key is not None} | self._without_step
        if self._calls_over:
            keys |= self._unbooked.keys() - self._adopted.keys()
        self._without_step = set[CallKey]()
        return {key: self._unbooked.pop(key) for key in keys & self._unbooked.keys()}

    def _seconds_taken(self) -> float:
        """The time that is to be booked, until now."""
        now = self._monotonic()
        worked, self._booked_at = now - self._booked_at, now
        self._spent = replace(self._spent, seconds=self._spent.seconds + worked)
        seconds, self._unbooked_seconds = self._unbooked_seconds + worked, 0.0
        return seconds

    async def _persist(
        self, drafts: Sequence[StepDraft], left: int, also: Also | None, booking: UsageDelta
    ) -> list[Step]:
        """Write until it is written. `left`: how many of the drafts come first and are not what `also` is about."""
        while True:
            try:
                return await finished(self._write(drafts, left, also, booking))
            except (AlreadyRecorded, Fenced, Unavailable) as error:
                # A try may have been under way on the server when it was looked for: the next one then finds the step
                # recorded, or the run handed back.
                if (found := await self._already(drafts)) is not None:
                    return found
                if not isinstance(error, Unavailable):
                    raise

    async def _write(
        self, drafts: Sequence[StepDraft], left: int, also: Also | None, booking: UsageDelta
    ) -> list[Step]:
        async with self._database.transaction(self.fence.tenant) as connection:
            new = await steps.append(connection, self.fence, self.term, drafts, booking)
            self._saving = await self._checkpoints.save(connection)
            if also is not None:
                await also(connection, new[left:])
            if untrained := [d.untrains for d in drafts if d.untrains]:
                await turns.untrain(connection, self.fence.run, untrained)
            if booking.usd or booking.released:  # last, because all runs of the tenant share that row
                await spend.settle(connection, self.fence, booking.released, booking.usd, booking.day)
        self._note_written(new)
        return new

    def _note_written(self, new: Sequence[Step]) -> None:
        """Beside the commit, since whoever appended may be cancelled there and never hear of it."""
        self._written += 1
        self._checkpoints.saved(self._saving)
        self._stored_seq = max([self._stored_seq, *(step.seq for step in new)])
        self._unshown += new
        if not self._at_exit:  # there they were noted when they were foreseen
            self.recollection.note(new)

    async def _show(self) -> None:
        """Tell viewers of what was committed."""
        unshown, self._unshown = self._unshown, []
        if unshown:
            await finished(self._viewers.steps(self.fence.tenant, self.fence.run, unshown))

    async def _already(self, drafts: Sequence[StepDraft]) -> list[Step] | None:
        """The steps, if a try whose answer was lost had been committed; None: none had. Asks until Postgres says."""
        while True:
            try:
                found = await self._found(drafts)
                break
            except Unavailable:
                await asyncio.sleep(RETRY_PAUSE)
        if found is not None:
            self._note_written(found)
        return found

    async def _found(self, drafts: Sequence[StepDraft]) -> list[Step] | None:
        """The steps of `drafts` as they are stored; without drafts none, if the run was handed back. None: not yet."""
        async with self._database.transaction(self.fence.tenant) as connection:
            if not drafts:
                return [] if await runs.handed_back(connection, self.fence) else None
            known = await self._later(connection, drafts)
        ours = {(s.key, s.kind): s for s in known if s.fence == self.fence.number}
        if any((d.key, d.kind) not in ours for d in drafts):
            return None
        return [ours[d.key, d.kind] for d in drafts]

    async def _later(self, connection: Connection, drafts: Sequence[StepDraft]) -> list[Step]:
        """Steps among which those of `drafts` are, if they were stored."""
        run, superstep = self.fence.run, min((d.key.superstep for d in drafts if d.key), default=None)
        later = await steps.after(connection, run, self._stored_seq, max(1000, len(drafts)))
        if superstep is None:
            return later
        # An append beside this one may have been noted first, and ours have a smaller seq.
        return later + list((await steps.journal(connection, run, superstep - 1)).values())


def _clean(draft: StepDraft) -> StepDraft:
    """What is recorded, and what the graph reads back, never holds a secret of this process."""
    title, detail, payload = without_secrets([draft.title, draft.detail, draft.payload])
    return replace(draft, title=title, detail=detail, payload=payload)


def _with_turns(fence: Fence, also: Also | None, behind: Behind | None) -> Also | None:
    """The same, with the turns behind the steps stored first."""
    if behind is None:
        return also

    async def both(connection: Connection, new: list[Step]) -> None:
        if rows := behind(new):
            await turn_rows.insert(connection, fence, rows)
        if also is not None:
            await also(connection, new)

    return both


def _digest(asked: Sequence[Any]) -> str:
    """Of models, drafts and plain data; stored JSON has lost the order of its keys, so it is sorted."""
    plain = [one.model_dump(mode="json") if isinstance(one, BaseModel) else one for one in asked]
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()
