"""A corridor with a key at one end and a door at the other, to measure how many episodes learning takes.

Policy and critics are tables. Both arms learn the same policy, which keeps or switches a subgoal and then acts, with
the same number of episodes per step. They differ in their advantages and critics. Which arm is faster depends on the
rate (measured by `hae_episodes`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from offing_trainer.batch import Bits, Floats, Indices
from offing_trainer.grouped_statistics import mean_by_index, std_by_index, sum_by_index
from offing_trainer.hierarchical_gae import (
    TruncationValue,
    build_turn_sequence,
    compute_action_stream,
    compute_subgoal_stream,
    compute_switch_stream,
)
from offing_trainer.turn_math import accumulate_backward, mark_first, mark_last, shift_from_next, standardize

SUBGOALS, ACTIONS = 2, 2


@dataclass(slots=True, eq=False)
class Tables:
    """Logits of the policy, and the values of the critics, all 0 at first.

    A state is a cell, with or without the key.
    """

    states: int
    switch: Floats = field(init=False)
    subgoal: Floats = field(init=False)
    action: Floats = field(init=False)
    low: Floats = field(init=False)
    high: Floats = field(init=False)
    before: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.switch, self.subgoal, self.low, self.before = (np.zeros((self.states, SUBGOALS)) for _ in range(4))
        self.action, self.high = np.zeros((self.states, SUBGOALS, ACTIONS)), np.zeros(self.states)


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """Concatenated episodes with one entry per turn."""

    episode: Indices
    state: Indices
    before: Indices
    switched: Indices
    subgoal: Indices
    action: Indices
    reward: Floats


@dataclass(frozen=True, slots=True)
class How:
    credit: str = "hierarchical"
    """A name of `CREDITS`."""
    cells: int = 9
    """Length of the corridor. An episode starts in the middle."""
    max_steps: int = 40
    """Maximum number of turns of an episode."""
    episodes: int = 32
    """Per step."""
    rate: float = 0.1
    """Of the policy."""
    critic_rate: float = 0.3
    gamma: float = 0.97
    lam: float = 0.95


def opened(seed: int, how: How) -> Iterator[float]:
    """Learn without end. Before each step, yield the share of its episodes that opened the door."""
    rng, tables = np.random.default_rng(seed), Tables(2 * how.cells)
    while True:
        turns = played(tables, how, rng)
        yield float(turns.reward.sum()) / how.episodes
        _learnt(tables, turns, how)


def episodes_until(seed: int, how: How, success: float = 0.9, maximum: int = 6400) -> int:
    """Return the episodes until a step's share of opened doors first reaches `success`, or `maximum` if it does not."""
    shares = islice(opened(seed, how), maximum // how.episodes)
    return next((how.episodes * nth for nth, share in enumerate(shares, 1) if share >= success), maximum)


def played(tables: Tables, how: How, rng: np.random.Generator) -> Turns:
    episodes, cells = how.episodes, how.cells
    subgoals, actions = _chance(tables.subgoal)[..., 1], _chance(tables.action)[..., 1]
    going: Indices = np.arange(episodes)
    cell: Indices = np.full(episodes, cells // 2)
    key: Bits = np.zeros(episodes, np.bool_)
    before: Indices = np.zeros(episodes, np.int64)
    columns = list[list[npt.NDArray[Any]]]()
    for t in range(how.max_steps):
        state: Indices = cell + cells * key
        drawn = rng.random((3, len(going)))
        switched: Bits = (drawn[0] < 1 / (1 + np.exp(-tables.switch[state, before]))) | (t == 0)
        subgoal: Indices = np.where(switched, drawn[1] < subgoals[state], before).astype(np.int64)
        action: Indices = (drawn[2] < actions[state, subgoal]).astype(np.int64)
        cell = np.clip(cell + 2 * action - 1, 0, cells - 1)
        key = key | (cell == 0)
        opened: Bits = key & (cell == cells - 1)
        columns.append([going, np.full(len(going), t), state, before, switched, subgoal, action, opened])
        going, cell, key, before = going[~opened], cell[~opened], key[~opened], subgoal[~opened]
    episode, turn, *values = (np.concatenate(part) for part in zip(*columns, strict=True))
    order = np.lexsort((turn, episode))
    whole = [part[order].astype(np.int64) for part in (episode, *values)]
    return Turns(*whole[:6], reward=whole[6].astype(np.float64))


def _learnt(tables: Tables, turns: Turns, how: How) -> None:
    """Make one step of the policy, then one of the critics."""
    advantages = CREDITS[how.credit](tables, turns, how)
    every, first = np.ones(len(turns.state), np.bool_), mark_first(turns.episode)
    chose = turns.switched > 0
    rate = how.rate * how.episodes / len(turns.state)
    decided = standardize(advantages["switch"], every) * ~first
    turned = 1 / (1 + np.exp(-tables.switch[turns.state, turns.before]))
    pull = standardize(advantages["subgoal"], chose)[:, None] * _pull(tables.subgoal[turns.state], turns.subgoal)
    act = standardize(advantages["action"], every)[:, None] * _pull(
        tables.action[turns.state, turns.subgoal], turns.action
    )
    np.add.at(tables.switch, (turns.state, turns.before), rate * decided * (turns.switched - turned))
    np.add.at(tables.subgoal, turns.state, rate * pull)
    np.add.at(tables.action, (turns.state, turns.subgoal), rate * act)


def _hierarchical(tables: Tables, turns: Turns, how: How) -> Mapping[str, Floats]:
    walk = build_turn_sequence(
        turns.episode,
        turns.switched > 0,
        turns.reward,
        tables.low[turns.state, turns.subgoal],
        tables.high[turns.state],
        np.zeros(len(turns.state), np.bool_),
    )
    low = compute_action_stream(walk, how.gamma, how.lam, TruncationValue.OFF)
    high = compute_subgoal_stream(walk, how.gamma, how.lam, TruncationValue.OFF)
    switch = compute_switch_stream(walk, how.gamma, TruncationValue.OFF, tables.before[turns.state, turns.before])
    request = ~np.isnan(high.target)
    _updated(tables.low, (turns.state, turns.subgoal), low.target, how.critic_rate)
    _updated(tables.high, (turns.state[request],), high.target[request], how.critic_rate)
    _updated(tables.before, (turns.state, turns.before), switch.target, how.critic_rate)
    return {"switch": switch.advantage, "subgoal": high.advantage, "action": low.advantage}


def _flat(tables: Tables, turns: Turns, how: How) -> Mapping[str, Floats]:
    value, last = tables.before[turns.state, turns.before], mark_last(turns.episode)
    surprise = turns.reward + how.gamma * shift_from_next(value, last, np.zeros(len(value))) - value
    advantage = accumulate_backward(surprise, np.full(len(value), how.gamma * how.lam), turns.episode)
    _updated(tables.before, (turns.state, turns.before), advantage + value, how.critic_rate)
    return dict.fromkeys(("switch", "subgoal", "action"), advantage)


def _grouped(_tables: Tables, turns: Turns, how: How) -> Mapping[str, Floats]:
    """Return the z-score of each episode's return among those of the step, which all start in the same state."""
    scores: Floats = sum_by_index(turns.reward, turns.episode, how.episodes)
    advantage = standardize(scores, np.ones(how.episodes, np.bool_))[turns.episode]
    return dict.fromkeys(("switch", "subgoal", "action"), advantage)


def _gigpo(tables: Tables, turns: Turns, how: How) -> Mapping[str, Floats]:
    """Return the same, plus the z-score of each turn's discounted return among the turns in the same state."""
    returns = accumulate_backward(turns.reward, np.full(len(turns.reward), how.gamma), turns.episode)
    state, count = turns.state * SUBGOALS + turns.before, tables.states * SUBGOALS
    centered = returns - mean_by_index(returns, state, count)[state]
    of_state = centered / (std_by_index(returns, state, count, 1)[state] + 1e-6)
    return {name: of_episode + of_state for name, of_episode in _grouped(tables, turns, how).items()}


CREDITS: Mapping[str, Callable[[Tables, Turns, How], Mapping[str, Floats]]] = {
    "hierarchical": _hierarchical,
    "flat": _flat,
    "gigpo": _gigpo,
    "grouped": _grouped,
}


def _updated(table: Floats, positions: tuple[Indices, ...], targets: Floats, rate: float) -> None:
    """Move every entry that occurs towards the mean of its targets."""
    total, count = np.zeros_like(table), np.zeros_like(table)
    np.add.at(total, positions, targets)
    np.add.at(count, positions, 1.0)
    table += rate * np.divide(total - count * table, count, out=np.zeros_like(table), where=count > 0)


def _chance(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _pull(logits: Floats, chosen: Indices) -> Floats:
    """Return d log p(chosen) by each logit."""
    return np.eye(logits.shape[-1])[chosen] - _chance(logits)
