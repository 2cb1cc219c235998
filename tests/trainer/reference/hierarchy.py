"""HiPER's hierarchical advantages by forward sums over each rollout, as the formulas have them; no recursion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal

from tests.trainer.reference.records import PerTurn, Rollout, Row, Turn, deviation, mean

Values = Mapping[str, PerTurn]
"""By critic: `value_high`, `value_low`, `value_switch`, `value_keep`, each by turn; `value_final`, by run."""


@dataclass(frozen=True, slots=True)
class Setting:
    gamma: float = 1.0
    turn: float = 1.0
    """lambda within a segment."""
    segment: float = 0.95
    """lambda over segments."""
    switch: Literal["release", "paper"] = "release"
    at_truncation: Literal["off", "last-value", "next-value"] = "off"
    standardize: bool = True


@dataclass(frozen=True, slots=True)
class Walk:
    """One rollout."""

    turns: list[Turn]
    paid: list[float]
    edges: list[int]
    """Where segments begin, and the number of turns."""
    high: list[float]
    low: list[float]
    ends: list[float]
    """What stands for the future after the last turn: of the low stream, of the others."""

    def segment(self, t: int) -> int:
        return max(k for k, edge in enumerate(self.edges[:-1]) if edge <= t)

    def beyond(self, k: int) -> float:
        """V_hi where the segment after the k-th begins."""
        return self.high[self.edges[k + 1]] if k + 2 < len(self.edges) else self.ends[1]


def hierarchical(rollouts: Sequence[Rollout], paid: PerTurn, values: Values, how: Setting) -> dict[str, list[float]]:
    """By row: A_lo for action tokens, A_hi for the subgoals that begin segments, A_sw for the switch's."""
    streams: dict[str, dict[str, float]] = {"action": {}, "subgoal": {}, "switch": {}}
    for rollout in rollouts:
        if rollout.turns:
            walk = _walk(rollout, paid, values, how)
            _add_low(streams["action"], rollout, walk, how)
            _add_high(streams["subgoal"], rollout, walk, how)
            _add_switch(streams["switch"], rollout, walk, values, how)
    if how.standardize:
        streams = {kind: _standardized(stream) for kind, stream in streams.items()}
    return {row.key: _routed(row, streams, first) for r in rollouts for row, first in _with_first(r)}


def _with_first(rollout: Rollout) -> list[tuple[Row, str]]:
    return [(row, rollout.all_turns[0].key if rollout.rows else "") for row in rollout.rows]


def _kinds(rollout: Rollout, turn: Turn) -> list[str]:
    row = next(row for row in rollout.rows if row.key == turn.row)
    return [_kind(row, position) for position in turn.places]


def _kind(row: Row, position: int) -> str:
    """What nobody could read is an action."""
    kind = row.tokens[position].kind
    return "action" if kind == "text" else kind


def _walk(rollout: Rollout, paid: PerTurn, values: Values, how: Setting) -> Walk:
    turns = rollout.turns
    begins = [t for t, turn in enumerate(turns) if t == 0 or "subgoal" in _kinds(rollout, turn)]
    high = [values["value_high"][turn.key] for turn in turns]
    low = [values[_low_head(rollout, turn, how)][turn.key] for turn in turns]
    after = [0.0, 0.0]
    if rollout.outcome == "truncated" and how.at_truncation == "last-value":
        after = [low[-1], high[begins[-1]]]
    if rollout.outcome == "truncated" and how.at_truncation == "next-value":
        after = [values["value_final"][rollout.run]] * 2
    return Walk(turns, [paid[turn.key] for turn in turns], [*begins, len(turns)], high, low, after)


def _low_head(rollout: Rollout, turn: Turn, how: Setting) -> str:
    """A turn in which nothing was decided has no low value; it is held against what its beginning is worth."""
    if {"switch", "subgoal", "kept"} & set(_kinds(rollout, turn)):
        return "value_low"
    return "value_switch" if how.switch == "release" else "value_high"


def _add_low(stream: dict[str, float], rollout: Rollout, walk: Walk, how: Setting) -> None:
    surprise = [walk.paid[t] + how.gamma * _next_low(walk, t) - walk.low[t] for t in range(len(walk.turns))]
    for t, turn in enumerate(walk.turns):
        if "action" in _kinds(rollout, turn):
            end = walk.edges[walk.segment(t) + 1]
            stream[turn.key] = sum((how.gamma * how.turn) ** (j - t) * surprise[j] for j in range(t, end))


def _next_low(walk: Walk, t: int) -> float:
    k = walk.segment(t)
    if t + 1 < walk.edges[k + 1]:
        return walk.low[t + 1]
    return walk.beyond(k) if t + 1 < len(walk.turns) else walk.ends[0]


def _add_high(stream: dict[str, float], rollout: Rollout, walk: Walk, how: Setting) -> None:
    lengths = [walk.edges[k + 1] - walk.edges[k] for k in range(len(walk.edges) - 1)]
    surprise = [_brought(walk, walk.edges[k], how.gamma) - walk.high[walk.edges[k]] for k in range(len(lengths))]
    for k, at in enumerate(walk.edges[:-1]):
        total = 0.0
        for m in range(k, len(lengths)):
            fade = 1.0
            for n in range(k, m):
                fade *= how.gamma ** lengths[n] * how.segment
            total += fade * surprise[m]
        kinds = _kinds(rollout, walk.turns[at])
        if "subgoal" in kinds or ("kept" in kinds and walk.turns[at] == rollout.all_turns[0]):
            stream[walk.turns[at].key] = total


def _brought(walk: Walk, t: int, gamma: float) -> float:
    """Discounted rewards from a turn to the end of its segment, and the high value of what comes then."""
    k = walk.segment(t)
    end = walk.edges[k + 1]
    return sum(gamma ** (j - t) * walk.paid[j] for j in range(t, end)) + gamma ** (end - t) * walk.beyond(k)


def _add_switch(stream: dict[str, float], rollout: Rollout, walk: Walk, values: Values, how: Setting) -> None:
    for t, turn in enumerate(walk.turns):
        if "switch" not in _kinds(rollout, turn):
            continue
        if how.switch == "release":
            stream[turn.key] = _brought(walk, t, how.gamma) - values["value_switch"][turn.key]
        else:
            gain = _decided(rollout, turn, t in walk.edges) * (walk.high[t] - values["value_keep"][turn.key])
            stream[turn.key] = gain if t else 0.0


def _decided(rollout: Rollout, turn: Turn, switched: bool) -> float:
    """q - beta, beta the sampler's chance of SWITCH: that of the tokens that say what was decided, or what is left."""
    row = next(row for row in rollout.rows if row.key == turn.row)
    tokens = [row.tokens[position] for position in turn.places]
    chance = exp(sum(token.behavior for token in tokens if token.kind == "switch"))
    return 1 - chance if switched else chance - 1


def _standardized(stream: dict[str, float]) -> dict[str, float]:
    """Over turns that have tokens of the stream, with the population's deviation; one alone says nothing."""
    values = list(stream.values())
    if len(values) < 2:
        return dict.fromkeys(stream, 0.0)
    middle, width = mean(values), deviation(values, 0)
    return {key: (value - middle) / (width + 1e-8) for key, value in stream.items()}


def _routed(row: Row, streams: Mapping[str, PerTurn], first: str) -> list[float]:
    """A copied subgoal is one that begins a segment only in the first turn of all."""
    values = [0.0] * len(row.tokens)
    for turn in row.turns:
        for position in turn.places:
            kind = _kind(row, position)
            name = "subgoal" if kind == "kept" and turn.key == first else kind
            values[position] = streams[name][turn.key] if name in streams else 0.0
    return values
