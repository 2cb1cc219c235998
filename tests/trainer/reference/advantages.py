"""What tokens are credited with, from the papers' formulas, by loops over records.

`PerTurn` in, `PerTurn` out, where credit is the same for all tokens of a turn.
"""

from collections.abc import Mapping, Sequence
from math import cos, exp, pi, sin

from tests.trainer.reference.records import PerTurn, Rollout, Row, Turn, deviation, in_groups, mean

# Rewards ----------------------------------------------------------------------------------------------------------


def discounted_outcome(rollouts: Sequence[Rollout], gamma: float) -> dict[str, float]:
    """EAPO: r[i, t] = gamma^(T_i - t) R_i. Rounds are what happened, whether or not there is something to train."""
    paid: dict[str, float] = {}
    for rollout in rollouts:
        rounds = rollout.all_turns
        for t, turn in enumerate(rounds, 1):
            paid[turn.key] = gamma ** (len(rounds) - t) * rollout.reward
    return paid


def information_gain(rollouts: Sequence[Rollout], start: Mapping[str, float], after: PerTurn) -> dict[str, float]:
    """IGPO: r_t = p_t - p_(t-1) before the last turn, whose reward is the outcome; p from log-probabilities."""
    paid: dict[str, float] = {}
    for rollout in rollouts:
        before = exp(start[rollout.run])
        for turn in rollout.all_turns:
            paid[turn.key] = exp(after[turn.key]) - before
            before = exp(after[turn.key])
        if rollout.rows:
            paid[rollout.all_turns[-1].key] = rollout.reward
    return _without_context(rollouts, paid)


def _without_context(rollouts: Sequence[Rollout], paid: PerTurn) -> dict[str, float]:
    """What turns of context alone were paid counts to the turn before that is trained, or to the first."""
    messages: dict[str, float] = {}
    for rollout in rollouts:
        keys = [turn.key for turn in rollout.turns]
        messages |= dict.fromkeys(keys, 0.0)
        at = 0
        for turn in rollout.all_turns:
            at = keys.index(turn.key) if turn.places else at
            if keys:
                messages[keys[at]] += paid[turn.key]
    return messages


def tool_efficiency(cost: float, minimum: float, smooth: float = 1.0) -> float:
    """OTC: k(m, n)."""
    if cost == 0 and minimum == 0:
        return 1.0
    if minimum == 0:
        return cos(cost * pi / (2 * cost + smooth))
    f = 2 * minimum * cost / (cost + minimum)
    return sin(f * pi / (2 * minimum))


def efficient(rollouts: Sequence[Rollout], costs: Mapping[str, float], success: float = 0.5) -> dict[str, float]:
    """OTC: k(m, n) r by run, n the least cost of a success of the task among these, and 0 where there is none."""
    paid: dict[str, float] = {}
    for rollout in rollouts:
        solved = [costs[r.run] for r in rollouts if r.task == rollout.task and r.reward >= success]
        scale = tool_efficiency(costs[rollout.run], min(solved, default=0))
        paid[rollout.run] = rollout.reward * scale if rollout.reward > 0 else rollout.reward
    return paid


def constrained(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """DCPO: +1 for success, -0.1 for a rollout that broke a limit, which is none whatever it then said, else 0."""
    return {r.run: -0.1 if r.outcome in ("truncated", "violated") else r.reward for r in rollouts}


# Beside the others of a group -------------------------------------------------------------------------------------


def z_scores(values: Sequence[float], ddof: int, epsilon: float = 1e-6) -> list[float]:
    """(x - mean) / (deviation + epsilon). One alone is compared with nothing: 0."""
    if len(values) < 2:
        return [0.0] * len(values)
    middle, width = mean(values), deviation(values, ddof)
    return [(value - middle) / (width + epsilon) for value in values]


def of_rollouts(rollouts: Sequence[Rollout], by_run: Mapping[str, float]) -> dict[str, float]:
    """Every turn of a rollout has what the rollout has."""
    return {turn.key: by_run[rollout.run] for rollout in rollouts for turn in rollout.turns}


def over_rollouts(rollouts: Sequence[Rollout], paid: Mapping[str, float], ddof: int = 1) -> dict[str, float]:
    """Flow-GRPO, GRPO, DCPO, SUPO: one entry a rollout, however many turns, rows or segments it has."""
    scores: dict[str, float] = {}
    for group in in_groups(rollouts):
        result = z_scores([paid[rollout.run] for rollout in group], ddof)
        scores |= {rollout.run: score for rollout, score in zip(group, result, strict=True)}
    return of_rollouts(rollouts, scores)


def over_turns(rollouts: Sequence[Rollout], paid: PerTurn, ddof: int) -> dict[str, float]:
    """EAPO: one entry a round of any rollout of the task."""
    scores: dict[str, float] = {}
    for group in in_groups(rollouts):
        turns = [turn for rollout in group for turn in rollout.turns]
        result = z_scores([paid[turn.key] for turn in turns], ddof)
        scores |= {turn.key: score for turn, score in zip(turns, result, strict=True)}
    return scores


def turn_returns(rollouts: Sequence[Rollout], paid: PerTurn, gamma: float) -> dict[str, float]:
    """IGPO: A_t = sum over k >= t of gamma^(k - t) r~_k, r~ normalized over all turns of the group."""
    normal = over_turns(rollouts, paid, ddof=1)
    advantages: dict[str, float] = {}
    for rollout in rollouts:
        keys = [turn.key for turn in rollout.turns]
        for t, key in enumerate(keys):
            advantages[key] = sum(gamma ** (k - t) * normal[keys[k]] for k in range(t, len(keys)))
    return advantages


# Beside the step --------------------------------------------------------------------------------------------------


def over_the_step(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """REINFORCE with the mean reward as baseline."""
    middle = mean([rollout.reward for rollout in rollouts])
    return of_rollouts(rollouts, {rollout.run: rollout.reward - middle for rollout in rollouts})


class SuccessTracker:
    """SPO: what is known of each task's success; forgets as the policy drifts."""

    def __init__(self, alpha: float = 4.0, beta: float = 4.0) -> None:
        self.start = (alpha, beta)
        self.known: dict[str, tuple[float, float]] = {}

    def credit(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """A = r - v, v before the step, and z-scores of that over the step's rollouts."""
        raw = [rollout.reward - self.expected(rollout.task) for rollout in rollouts]
        return dict(zip((rollout.run for rollout in rollouts), z_scores(raw, 0, epsilon=1e-8), strict=True))

    def expected(self, task: str) -> float:
        alpha, beta = self.known.get(task, self.start)
        return alpha / (alpha + beta)

    def remember(self, task: str, rewards: Sequence[float], rho: float) -> None:
        alpha, beta = self.known.get(task, self.start)
        self.known[task] = (rho * alpha + sum(rewards), rho * beta + sum(1 - reward for reward in rewards))


def kept_fraction(drift: float, half: float = 0.06, least: float = 0.875, maximum: float = 0.96) -> float:
    """SPO: rho = 2^(-D / D_half), within bounds."""
    return min(max(2 ** (-drift / half), least), maximum)


def modulated(
    rollouts: Sequence[Rollout], advantages: PerTurn, k: float, k_next: float, zeta: float
) -> dict[str, float]:
    """EMPG: A g(H_t) + zeta f(H_(t+1)), less its mean over the step's turns."""
    width = _scaled({t.key: mean(_entropies(r, t)) for r in rollouts for t in r.turns})
    usual = mean([exp(-k * entropy) for entropy in width.values()])
    changed: dict[str, float] = {}
    for rollout in rollouts:
        for turn, after in zip(rollout.turns, [*rollout.turns[1:], None], strict=False):
            bonus = zeta * exp(-k_next * width[after.key]) if after else 0.0
            changed[turn.key] = advantages[turn.key] * exp(-k * width[turn.key]) / usual + bonus
    middle = mean(list(changed.values()))
    return {key: value - middle for key, value in changed.items()}


def _entropies(rollout: Rollout, turn: Turn) -> list[float]:
    row = next(row for row in rollout.rows if row.key == turn.row)
    return [row.tokens[position].entropy for position in turn.places]


def _scaled(values: PerTurn) -> dict[str, float]:
    """From 0, the least, to 1, the most."""
    low, high = min(values.values()), max(values.values())
    return {key: (value - low) / (high - low) for key, value in values.items()}


# Choices ----------------------------------------------------------------------------------------------------------


def not_cut_off(rollouts: Sequence[Rollout]) -> list[Row]:
    """SUPO: rollouts without a final answer in time are masked, after their rewards counted."""
    return [row for rollout in rollouts if rollout.outcome != "truncated" for row in rollout.rows]


def largest_spread(values: Sequence[float], count: int) -> float:
    """D3S: the greatest variance of any `count` of these, by trying all."""
    return max(deviation(chosen, 0) ** 2 for chosen in _choices(list(values), count))


def _choices(values: list[float], count: int) -> list[list[float]]:
    if count == 0:
        return [[]]
    if len(values) < count:
        return []
    return [[values[0], *rest] for rest in _choices(values[1:], count - 1)] + _choices(values[1:], count)
