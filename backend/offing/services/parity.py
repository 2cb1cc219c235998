"""Whether stored log-probabilities are those of the stored ids under the stored policy version.

A sample of turns is scored again by the engine; what differs is put in quarantine, so that it is never trained. Turns
that cannot be scored stay as they are, and are told.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.models.credentials import Destination
from offing.models.policy_engine import scored
from offing.models.policy_wire import OUR_ENGINE, Scores
from offing.models.role_call import Refusal
from offing.storage import parity, segments
from offing.storage.pool import Database
from offing.storage.segments import StoredTurn, TurnTokens

TOLERANCE = 1e-4
"""Largest difference of float32 log-probabilities that is no difference. Engines in bfloat16 need more."""

AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Compared:
    """One turn, scored again."""

    run: UUID
    seq: int
    policy: str
    worst: float | None
    """Largest difference of a log-probability. None: it could not be scored."""
    doubt: str = ""
    """Why the turn is now in quarantine. Empty: it is not."""
    unscored: str = ""
    """Why it could not be scored."""


@dataclass(frozen=True, slots=True)
class Parity:
    """What a check came to."""

    compared: tuple[Compared, ...]

    @property
    def checked(self) -> int:
        return sum(one.worst is not None for one in self.compared)

    @property
    def worst(self) -> float:
        """Largest difference of all. 0: nothing was scored."""
        return max((one.worst for one in self.compared if one.worst is not None), default=0.0)

    @property
    def doubtful(self) -> tuple[Compared, ...]:
        return tuple(one for one in self.compared if one.doubt)

    @property
    def unscored(self) -> tuple[Compared, ...]:
        return tuple(one for one in self.compared if one.unscored)


async def check(
    database: Database,
    tenant: UUID,
    to: Destination,
    *,
    sample: int,
    seed: int = 0,
    run: UUID | None = None,
    policy: str | None = None,
    tolerance: float = TOLERANCE,
) -> Parity:
    """Score `sample` turns again and put into quarantine what differs by more than `tolerance`.

    `run`, `policy`: only of these. Turns that are in quarantine already are not drawn.
    """
    async with database.transaction(tenant) as connection:
        drawn = await parity.sample(connection, sample, seed, run=run, policy=policy)
    compared: list[Compared] = []
    for of, seqs in drawn.items():
        compared += await _run(database, tenant, to, of, seqs, tolerance)
    return Parity(tuple(compared))


async def _run(
    database: Database, tenant: UUID, to: Destination, run: UUID, seqs: Sequence[int], tolerance: float
) -> list[Compared]:
    async with database.transaction(tenant) as connection:
        turns = [turn for turn in await segments.turns_of(connection, run) if turn.seq in set(seqs)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def compared(turn: StoredTurn) -> Compared:
        async with gate:
            return await _compared(to, run, turn, tolerance)

    found = await asyncio.gather(*(compared(turn) for turn in turns))
    doubts = [(one.seq, one.doubt) for one in found if one.doubt]
    async with database.transaction(tenant) as connection:
        await parity.quarantine(connection, run, doubts)
    return list(found)


async def _compared(to: Destination, run: UUID, turn: StoredTurn, tolerance: float) -> Compared:
    tokens = turn.tokens
    assert tokens is not None, "only turns with ids are drawn"
    most = 0 if turn.engine_build.startswith(OUR_ENGINE) else 1
    ids = list(tokens.whole[: tokens.end])
    scores = await scored(to, turn.policy, ids, turn.sampling, most=most)
    if isinstance(scores, Refusal):
        return Compared(run, turn.seq, turn.policy, None, unscored=scores.message)
    worst, at = _difference(tokens, scores)
    return Compared(run, turn.seq, turn.policy, worst, _doubt(turn, scores, worst, at, tolerance))


def _difference(tokens: TurnTokens, scores: Scores) -> tuple[float, int]:
    """The largest difference, and the completion id at which it is."""
    again = scores.logprobs[tokens.start : tokens.end]
    differences = [abs(old - (new or 0.0)) for old, new in zip(tokens.logprobs, again, strict=True)]
    worst = max(differences)
    return worst, differences.index(worst)


def _doubt(turn: StoredTurn, scores: Scores, worst: float, at: int, tolerance: float) -> str:
    if turn.weights_sha256 and scores.weights_sha256 and turn.weights_sha256 != scores.weights_sha256:
        return f"the weights of {turn.policy} are not those that it was sampled with"
    if worst <= tolerance:
        return ""
    return f"scored again, log-probabilities differ by up to {worst:.3g}, at completion id {at}"
