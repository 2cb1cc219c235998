"""Hierarchical and flat advantages in fully known problems: three states, three subgoals, two actions, eight turns.

Critics and the gradient are exact, computed by dynamic programming. What is measured is the variance of an episode's
estimate of the gradient, separately for the tables of the switch, the subgoals and the actions. There is no discount,
because with a discount, advantages without a factor per turn do not give the gradient of the return. `hae_variance`
measures it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from offing_trainer.batch import Floats, Indices
from offing_trainer.hierarchical_gae import (
    TruncationValue,
    TurnSequence,
    build_turn_sequence,
    compute_action_stream,
    compute_paper_switch_stream,
    compute_subgoal_stream,
    compute_switch_stream,
)
from offing_trainer.turn_math import accumulate_backward, mark_last, shift_from_next

STATES, SUBGOALS, ACTIONS, MAX_TURNS = 3, 3, 2, 8
NONE = 0
"""The subgoal before the first turn. Nothing depends on it, because the first turn always switches."""

Blocks = Mapping[str, Floats]
"""By `switch`, `subgoal`, `action`. The first axis is episodes."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Rewards, transitions, and a policy of three tables of logits."""

    start: Floats
    """(S,)"""
    moves: Floats
    """(S, A, S)"""
    pays: Floats
    """(S, A)"""
    switch: Floats
    """(S, O) of switching, by state and previous subgoal."""
    subgoal: Floats
    """(S, O)"""
    action: Floats
    """(S, O, A)"""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Exact values by turn, with one additional turn of zeros at the end."""

    low: Floats
    """(T + 1, S, O) with the subgoal chosen."""
    high: Floats
    """(T + 1, S) before a subgoal is chosen."""
    before: Floats
    """(T + 1, S, O) before the decision to keep or switch."""


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """(E, T) each."""

    state: Indices
    before: Indices
    """Subgoal of the previous turn."""
    switched: Indices
    subgoal: Indices
    action: Indices
    reward: Floats


def a_world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    return World(
        start=rng.dirichlet(np.ones(STATES)),
        moves=rng.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS)),
        pays=rng.normal(size=(STATES, ACTIONS)),
        switch=rng.normal(-0.7, 0.5, (STATES, SUBGOALS)),
        subgoal=rng.normal(size=(STATES, SUBGOALS)),
        action=rng.normal(size=(STATES, SUBGOALS, ACTIONS)),
    )


def values(world: World) -> Values:
    low, before = (np.zeros((MAX_TURNS + 1, STATES, SUBGOALS)) for _ in range(2))
    high = np.zeros((MAX_TURNS + 1, STATES))
    turns, chance = _sigmoid(world.switch), _softmax(world.subgoal)
    for t in reversed(range(MAX_TURNS)):
        later = np.einsum("sat,to->sao", world.moves, before[t + 1])
        low[t] = np.einsum("soa,sao->so", _softmax(world.action), world.pays[..., None] + later)
        high[t] = (chance * low[t]).sum(1)
        before[t] = turns * high[t][:, None] + (1 - turns) * low[t]
    return Values(low, high, before)


def walked(world: World, episodes: int, rng: np.random.Generator) -> Episodes:
    state, before = rng.choice(STATES, episodes, p=world.start), np.full(episodes, NONE)
    turns, subgoals, actions = _sigmoid(world.switch), _softmax(world.subgoal), _softmax(world.action)
    rows: list[tuple[Indices, ...]] = []
    for t in range(MAX_TURNS):
        switched = (rng.random(episodes) < turns[state, before]) | (t == 0)
        subgoal = np.where(switched, _drawn(subgoals[state], rng), before)
        action = _drawn(actions[state, subgoal], rng)
        rows.append((state, before, switched.astype(np.int64), subgoal, action))
        state, before = _drawn(world.moves[state, action], rng), subgoal
    results = [np.stack(column, 1) for column in zip(*rows, strict=True)]
    return Episodes(*results, reward=world.pays[results[0], results[4]])


def walk(episodes: Episodes, known: Values) -> TurnSequence:
    """Episodes as turns, with exact critics."""
    count = len(episodes.state)
    turn = np.broadcast_to(np.arange(MAX_TURNS), (count, MAX_TURNS)).ravel()
    state, subgoal = episodes.state.ravel(), episodes.subgoal.ravel()
    return build_turn_sequence(
        np.repeat(np.arange(count), MAX_TURNS),
        episodes.switched.ravel() > 0,
        episodes.reward.ravel(),
        known.low[turn, state, subgoal],
        known.high[turn, state],
        np.zeros(count * MAX_TURNS, np.bool_),
    )


def hierarchical(
    world: World, episodes: Episodes, known: Values, lam: tuple[float, float], *, paper: bool = False
) -> Blocks:
    """Return the advantages (E, T) of each turn's switch, subgoal and action. `paper` selects the paper's switch."""
    turns = walk(episodes, known)
    before = _before(episodes, known)
    if paper:
        chance = _sigmoid(world.switch)[episodes.state, episodes.before].ravel()
        stored = known.low[_turn(episodes), episodes.state, episodes.before].ravel()
        switch = compute_paper_switch_stream(turns, stored, chance)
    else:
        switch = compute_switch_stream(turns, 1.0, TruncationValue.OFF, before)
    results = {
        "switch": switch,
        "subgoal": compute_subgoal_stream(turns, 1.0, lam[1], TruncationValue.OFF),
        "action": compute_action_stream(turns, 1.0, lam[0], TruncationValue.OFF),
    }
    return {block: stream.advantage.reshape(episodes.state.shape) for block, stream in results.items()}


def flat(episodes: Episodes, known: Values, lam: float) -> Blocks:
    """Return the advantages (E, T), the same for all parts of a turn, from one critic before it."""
    before = _before(episodes, known)
    owner = np.repeat(np.arange(len(episodes.state)), MAX_TURNS)
    last = mark_last(owner)
    surprise = episodes.reward.ravel() + shift_from_next(before, last, np.zeros(len(before))) - before
    advantages = accumulate_backward(surprise, np.full(len(before), lam), owner).reshape(episodes.state.shape)
    return dict.fromkeys(("switch", "subgoal", "action"), advantages)


def gradients(world: World, episodes: Episodes, advantages: Blocks) -> Blocks:
    """Return each episode's estimate (E, logits): the sum over turns of advantage * d log p."""
    first = np.arange(MAX_TURNS) == 0
    positions = episodes.state * SUBGOALS + episodes.before
    turns = _sigmoid(world.switch)[episodes.state, episodes.before]
    pull = np.where(first, 0.0, advantages["switch"] * (episodes.switched - turns))
    subgoal = _pulled(_softmax(world.subgoal)[episodes.state], episodes.subgoal)
    action = _pulled(_softmax(world.action)[episodes.state, episodes.subgoal], episodes.action)
    chosen = advantages["subgoal"] * episodes.switched
    return {
        "switch": _gathered(pull[..., None], positions, STATES * SUBGOALS),
        "subgoal": _gathered(chosen[..., None] * subgoal, episodes.state, STATES),
        "action": _gathered(
            advantages["action"][..., None] * action, episodes.state * SUBGOALS + episodes.subgoal, STATES * SUBGOALS
        ),
    }


def exact_gradient(world: World, step: float = 1e-5) -> Blocks:
    """Return the gradient (1, logits) of the expected return, by central differences of its exact value."""

    def moved(block: str, nth: int, by: float) -> float:
        logits = getattr(world, block).copy()
        logits.flat[nth] += by
        changed = replace(world, **{block: logits})
        return float(world.start @ values(changed).high[0])

    def slopes(block: str) -> Floats:
        size = getattr(world, block).size
        return np.array([[(moved(block, n, step) - moved(block, n, -step)) / (2 * step) for n in range(size)]])

    return {block: slopes(block) for block in ("switch", "subgoal", "action")}


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one kind of advantages in one block."""

    credit: str
    block: str
    variance: float
    """Trace of the covariance of an episode's gradient."""
    farthest: float
    """Maximum distance of a mean from the exact gradient, in standard errors."""


CREDITS = ("flat", "hierarchical", "paper")


def compute_advantages(name: str, world: World, episodes: Episodes, known: Values, lam: tuple[float, float]) -> Blocks:
    """By a name of `CREDITS`: flat, hierarchical as released, and with the paper's form of the switch stream."""
    if name == "flat":
        return flat(episodes, known, lam[0])
    return hierarchical(world, episodes, known, lam, paper=name == "paper")


def measured(name: str, world: World, episodes: Episodes, known: Values, lam: tuple[float, float]) -> list[Measured]:
    """Measure one kind of advantages, block by block."""
    exact, count = exact_gradient(world), len(episodes.state)
    results: list[Measured] = []
    for block, estimate in gradients(world, episodes, compute_advantages(name, world, episodes, known, lam)).items():
        error = estimate.std(0) / np.sqrt(count)
        apart = np.abs(estimate.mean(0) - exact[block][0])
        farthest = float(np.max(np.divide(apart, error, out=np.zeros_like(apart), where=error > 0)))
        results.append(Measured(name, block, float(estimate.var(0).sum()), farthest))
    return results


def seen_in(seed: int, episodes: int, wrong: float = 0.0) -> tuple[World, Episodes, Values]:
    """Return a world, its episodes and its values. `wrong` is the standard deviation of an error of each state's high
    value, which the critic of flat advantages has as well."""
    world = a_world(seed)
    seen = walked(world, episodes, np.random.default_rng(seed + 1))
    return world, seen, _mistaken(world, values(world), wrong, np.random.default_rng(seed + 2))


def compared(episodes: int, seed: int, lam: tuple[float, float], wrong: float = 0.0) -> list[Measured]:
    """Measure every kind of advantages on the same episodes."""
    world, seen, known = seen_in(seed, episodes, wrong)
    return [one for name in CREDITS for one in measured(name, world, seen, known, lam)]


def _mistaken(world: World, known: Values, wrong: float, rng: np.random.Generator) -> Values:
    high = known.high + np.where(np.arange(MAX_TURNS + 1)[:, None] < MAX_TURNS, wrong * rng.normal(size=STATES), 0.0)
    turns = _sigmoid(world.switch)
    return replace(known, high=high, before=known.before + turns * (high - known.high)[..., None])


def _before(episodes: Episodes, known: Values) -> Floats:
    """(E T,) before the turn. In the first turn, only a switch is possible."""
    turn = _turn(episodes)
    result = known.before[turn, episodes.state, episodes.before]
    return np.where(turn == 0, known.high[turn, episodes.state], result).ravel()


def _turn(episodes: Episodes) -> Indices:
    return np.broadcast_to(np.arange(MAX_TURNS), episodes.state.shape)


def _softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _sigmoid(logits: Floats) -> Floats:
    return 1 / (1 + np.exp(-logits))


def _drawn(chances: Floats, rng: np.random.Generator) -> Indices:
    """Return one of each row's choices, (E,)."""
    edges = chances.cumsum(-1)
    return np.minimum((rng.random((len(chances), 1)) > edges).sum(-1), chances.shape[-1] - 1)


def _pulled(chances: Floats, chosen: Indices) -> Floats:
    """Return d log p(chosen) by each logit."""
    return np.eye(chances.shape[-1])[chosen] - chances


def _gathered(amounts: Floats, positions: Indices, size: int) -> Floats:
    """Return (E, size * width) amounts, added up by position."""
    result = np.zeros((len(positions), size, amounts.shape[-1]))
    for t in range(MAX_TURNS):
        np.add.at(result, (np.arange(len(positions)), positions[:, t]), amounts[:, t])
    return result.reshape(len(positions), -1)
