"""Rollouts as plain nested records, for references that are slow on purpose.

Made of what the store gives, beside the trainer's arrays and without them. A turn that has no token to train happened,
and what it was paid is not lost, but it is no step of the policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from offing.core.training_rows import SPAN_CODES, TrainingRow
from offing_trainer.batch import RolloutGroup, TrainingRollout

KINDS = {code: kind for kind, code in SPAN_CODES.items()}

PerToken = Mapping[str, Sequence[float]]
"""By key of a row: a number for each of its trained tokens."""

PerTurn = Mapping[str, float]
"""By key of a turn."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """Empty: in no span."""
    behavior: float
    entropy: float


@dataclass(frozen=True, slots=True)
class Turn:
    key: str
    """Run and seq."""
    seq: int
    number: int
    row: str
    places: tuple[int, ...]
    """Of its tokens among those of the row; empty: it is context alone."""


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    run: str
    group: str
    tokens: tuple[Token, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    run: str
    group: str
    task: str
    reward: float
    outcome: str
    rows: tuple[Row, ...]

    @property
    def all_turns(self) -> list[Turn]:
        """In the order in which they were taken."""
        return sorted((turn for row in self.rows for turn in row.turns), key=lambda turn: turn.seq)

    @property
    def turns(self) -> list[Turn]:
        """Those with tokens to train."""
        return [turn for turn in self.all_turns if turn.places]


def records_of(groups: Sequence[RolloutGroup]) -> list[Rollout]:
    return [_rollout(group, sample) for group in groups for sample in group.rollouts]


def _rollout(group: RolloutGroup, sample: TrainingRollout) -> Rollout:
    episode = sample.metadata
    assert episode.reward is not None
    rows = tuple(_row(group.key, row) for row in sample.rows)
    return Rollout(str(episode.run_id), group.key, group.task, episode.reward, episode.outcome or "", rows)


def _row(group: str, row: TrainingRow) -> Row:
    run = str(row.metadata.run_id)
    tokens: list[Token] = []
    positions: dict[int, list[int]] = {}
    for at in range(len(row)):
        if row.loss_mask[at]:
            positions.setdefault(int(row.turn_index[at]), []).append(len(tokens))
            kind = KINDS.get(int(row.span_kind[at]), "")
            tokens.append(Token(kind, float(row.behavior_logprobs[at]), float(row.entropy[at])))
    turns = tuple(
        Turn(f"{run} {seq}", seq, row.turns.turn[nth], row.key, tuple(positions.get(nth, ())))
        for nth, seq in enumerate(row.turns.seq)
    )
    return Row(row.key, run, group, tuple(tokens), turns)


def in_groups(rollouts: Sequence[Rollout]) -> Iterator[list[Rollout]]:
    """The rollouts of each group."""
    for key in dict.fromkeys(rollout.group for rollout in rollouts):
        yield [rollout for rollout in rollouts if rollout.group == key]


def all_rows(rollouts: Sequence[Rollout]) -> list[Row]:
    return [row for rollout in rollouts for row in rollout.rows]


def spread(rollouts: Sequence[Rollout], turns: PerTurn) -> dict[str, list[float]]:
    """What each turn has, for each of its tokens."""
    return {row.key: _of_row(row, turns) for row in all_rows(rollouts)}


def _of_row(row: Row, turns: PerTurn) -> list[float]:
    values = [0.0] * len(row.tokens)
    for turn in row.turns:
        for position in turn.places:
            values[position] = turns[turn.key]
    return values


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def deviation(values: Sequence[float], ddof: int) -> float:
    middle = mean(values)
    return (sum((value - middle) ** 2 for value in values) / (len(values) - ddof)) ** 0.5
