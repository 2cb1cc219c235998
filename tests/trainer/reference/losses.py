"""What a step is to make smaller, from the papers' formulas, and its slope by differences of the whole loss.

Rows are those that are trained, in any order, one that is trained twice twice. Nothing here knows a derivative.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp

from tests.trainer.reference.records import PerToken, Rollout, Row, Turn, mean

Weights = Sequence[Sequence[float]]
"""For each trained row, for each of its tokens."""

# Averages ---------------------------------------------------------------------------------------------------------

Average = Callable[[Sequence[Row], Sequence[Rollout]], Weights]
"""Of the rows that are trained, and of all rollouts of the step."""


def token_mean(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
    count = sum(len(row.tokens) for row in rows)
    return [[1 / count] * len(row.tokens) for row in rows]


def row_mean(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
    count = sum(1 for row in rows if row.tokens)
    return [[1 / count / max(len(row.tokens), 1)] * len(row.tokens) for row in rows]


def rollout_mean(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
    sizes: dict[str, int] = {}
    for row in rows:
        if row.tokens:
            sizes[row.run] = sizes.get(row.run, 0) + len(row.tokens)
    return [[1 / len(sizes) / sizes.get(row.run, 1)] * len(row.tokens) for row in rows]


def rollout_turn_token(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
    """Flow-GRPO: 1 / (Q G T_i |a|); Q tasks and G rollouts as they were collected, T_i turns that are trained."""
    weights: list[list[float]] = []
    for row in rows:
        of_row = [0.0] * len(row.tokens)
        mine = next(rollout for rollout in rollouts if rollout.run == row.run)
        for turn in row.turns:
            for position in turn.places:
                of_row[position] = _share(mine, rollouts) / len(mine.turns) / len(turn.places)
        weights.append(of_row)
    return weights


def segment_sum(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
    """DCPO: 1 / Q over tasks, 1 / |G| over rollouts, a sum over segments, in each the mean over its tokens."""
    runs = {rollout.run: rollout for rollout in rollouts}
    return [[_share(runs[r.run], rollouts) / max(len(r.tokens), 1)] * len(r.tokens) for r in rows]


def _share(mine: Rollout, rollouts: Sequence[Rollout]) -> float:
    """1 / (Q G)"""
    size = sum(1 for rollout in rollouts if rollout.group == mine.group)
    return 1 / (len({rollout.group for rollout in rollouts}) * size)


# Surrogates -------------------------------------------------------------------------------------------------------


def clipped(ratio: float, advantage: float, low: float, high: float, dual: float | None = None) -> float:
    """PPO: min(ratio A, clip(ratio) A); dual: where A < 0, not below dual A. To be made larger."""
    minimum = min(ratio * advantage, min(max(ratio, low), high) * advantage)
    return max(minimum, dual * advantage) if dual and advantage < 0 else minimum


Surrogate = Callable[[Row, int, Sequence[float]], float]
"""Of a row, a place and the row's log-probabilities; to be made smaller."""


def ppo(advantages: PerToken, old: PerToken, low: float, high: float, dual: float | None = None) -> Surrogate:
    """Bounds of the ratio itself."""

    def loss(row: Row, position: int, logp: Sequence[float]) -> float:
        ratio = exp(logp[position] - old[row.key][position])
        return -clipped(ratio, advantages[row.key][position], low, high, dual)

    return loss


def gspo(advantages: PerToken, old: PerToken, low: float, high: float, over: str) -> Surrogate:
    """s = exp(mean of log p - log p_old) of the sequence."""

    def loss(row: Row, position: int, logp: Sequence[float]) -> float:
        positions = range(len(row.tokens)) if over == "rows" else _turn(row, position).places
        ratio = exp(mean([logp[at] - old[row.key][at] for at in positions]))
        return -clipped(ratio, advantages[row.key][position], 1 - low, 1 + high)

    return loss


def likelihood(advantages: PerToken) -> Surrogate:
    """-A log p."""
    return lambda row, position, logp: -advantages[row.key][position] * logp[position]


def _turn(row: Row, position: int) -> Turn:
    return next(turn for turn in row.turns if position in turn.places)


def balanced_bounds(
    rows: Sequence[Row], advantages: PerToken, old: PerToken, start: PerToken, target: float = 0.5, dual: float = 3.0
) -> tuple[float, float]:
    """BAPO: from (.6, 1.2) the lower bound up to .9, then the upper one up to 3, until what has A > 0 brings the share.

    The share is of |A| ratio of tokens whose gradient lives.
    """
    path = [(0.6 + 0.05 * n, 1.2) for n in range(7)] + [(0.9, 1.2 + 0.05 * n) for n in range(1, 37)]
    for low, high in path:
        good = bad = 0.0
        for row in rows:
            for position in range(len(row.tokens)):
                advantage = advantages[row.key][position]
                ratio = exp(start[row.key][position] - old[row.key][position])
                if advantage > 0 and ratio <= high:
                    good += advantage * ratio
                if advantage < 0 and low <= ratio <= dual:
                    bad -= advantage * ratio
        if good + bad > 0 and good / (good + bad) >= target:
            return low, high
    return path[-1]


# Terms beside -----------------------------------------------------------------------------------------------------


def kl(reference: PerToken, estimator: str) -> Surrogate:
    """Schulman's estimators of KL(policy, reference), d = log p - log p_ref."""

    def loss(row: Row, position: int, logp: Sequence[float]) -> float:
        d = logp[position] - reference[row.key][position]
        return {"k1": d, "k2": d * d / 2, "k3": exp(-d) - 1 + d}[estimator]

    return loss


def likelihood_guard(advantages: PerToken, old: PerToken, gate: str = "turns") -> Surrogate:
    """LLDS: max(0, d), d = log p_old - log p, where A >= 0 and the sum of d over the action is above 0."""

    def loss(row: Row, position: int, logp: Sequence[float]) -> float:
        d = [before - now for before, now in zip(old[row.key], logp, strict=True)]
        gated = {"turns": _turn(row, position).places, "rows": range(len(row.tokens)), "tokens": (position,)}[gate]
        counts = advantages[row.key][position] >= 0 and sum(d[at] for at in gated) > 0
        return max(0.0, d[position]) if counts else 0.0

    return loss


def entropy_band(usual: Mapping[int, float]) -> Surrogate:
    """EPO, as a hinge: how far an entropy is outside .8 to 1.2 of what was usual at turns of that number."""

    def loss(row: Row, position: int, entropy: Sequence[float]) -> float:
        middle = usual.get(_turn(row, position).number)
        return 0.0 if middle is None else max(0.0, entropy[position] - 1.2 * middle, 0.8 * middle - entropy[position])

    return loss


def mean_entropy_band(usual: Mapping[int, float]) -> Surrogate:
    """The same of the turn's mean."""

    def loss(row: Row, position: int, entropy: Sequence[float]) -> float:
        turn = _turn(row, position)
        middle, now = usual.get(turn.number), mean([entropy[at] for at in turn.places])
        return 0.0 if middle is None else max(0.0, now - 1.2 * middle, 0.8 * middle - now)

    return loss


def usual_entropy(steps: Sequence[Sequence[Row]]) -> dict[int, float]:
    """EPO: by number of the turn, the mean over steps of the mean over turns of their tokens' mean entropy."""
    results: dict[int, list[float]] = {}
    for rows in steps:
        for number, values in _entropies(rows).items():
            results.setdefault(number, []).append(mean(values))
    return {number: mean(values) for number, values in results.items()}


def _entropies(rows: Sequence[Row]) -> dict[int, list[float]]:
    """By number, each turn's mean."""
    results: dict[int, list[float]] = {}
    for row in rows:
        for turn in row.turns:
            if turn.places:
                results.setdefault(turn.number, []).append(
                    mean([row.tokens[position].entropy for position in turn.places])
                )
    return results


# Weights of tokens ------------------------------------------------------------------------------------------------


def importance(
    old: PerToken,
    *,
    over: str = "tokens",
    average: bool = False,
    mask: bool = False,
    low: float = 0.0,
    high: float = 2.0,
) -> Callable[[Row, int], float]:
    """Truncated importance sampling: min(p_old / p_behavior, high), of a token or of all that it is taken over.

    `average`: the geometric mean of the tokens' ratios; `mask`: what is outside the bounds counts as 0.
    """

    def weight(row: Row, position: int) -> float:
        positions = {"tokens": (position,), "turns": _turn(row, position).places, "rows": range(len(row.tokens))}[over]
        moved = [old[row.key][at] - row.tokens[at].behavior for at in positions]
        ratio = exp(mean(moved) if average else sum(moved))
        if mask:
            return ratio if low <= ratio <= high else 0.0
        return min(ratio, high)

    return weight


def times(average: Average, factor: Callable[[Row, int], float]) -> Average:
    """Weights are multiplied."""

    def weights(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> Weights:
        plain = average(rows, rollouts)
        return [
            [w * factor(row, position) for position, w in enumerate(mine)]
            for row, mine in zip(rows, plain, strict=True)
        ]

    return weights


def loudest(rows: Sequence[Row], advantages: PerToken, count: int) -> list[list[bool]]:
    """D3S: which tokens are among the `count` with the largest |A| H."""
    loud = [[abs(advantages[r.key][p]) * r.tokens[p].entropy for p in range(len(r.tokens))] for r in rows]
    order = sorted((value for values in loud for value in values), reverse=True)
    minimum = order[count - 1]
    return [[value >= minimum for value in values] for values in loud]


# Sums -------------------------------------------------------------------------------------------------------------


def total(rows: Sequence[Row], weights: Weights, at: PerToken, term: Surrogate) -> float:
    return sum(
        weight * term(row, position, at[row.key])
        for row, mine in zip(rows, weights, strict=True)
        for position, weight in enumerate(mine)
    )


def slopes(value: Callable[[PerToken], float], at: PerToken, step: float = 1e-5) -> dict[str, list[float]]:
    """Central differences by each token of each row."""
    results: dict[str, list[float]] = {}
    for key in at:
        results[key] = []
        for position in range(len(at[key])):
            up, down = (value(_moved(at, key, position, by)) for by in (step, -step))
            results[key].append((up - down) / (2 * step))
    return results


def _moved(at: PerToken, key: str, position: int, by: float) -> PerToken:
    there = list(at[key])
    there[position] += by
    return {**at, key: there}
