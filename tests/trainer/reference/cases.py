"""The published ways to train, each as a chain of the trainer beside what the references say of the same rollouts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from offing_trainer.pipeline import Pipeline
from tests.trainer.builders import a_pipeline, a_recipe
from tests.trainer.reference import advantages as by
from tests.trainer.reference import losses as of
from tests.trainer.reference.hierarchy import Setting, hierarchical
from tests.trainer.reference.records import PerToken, Rollout, Row, all_rows, in_groups, spread
from tests.trainer.reference.trainer_results import entropies, logp_of, logps, of_runs, of_turns

Surrogate = Callable[[PerToken, PerToken, Sequence[Row]], of.Surrogate]
"""Of credit, the anchor, and the rows that are trained."""


@dataclass(frozen=True)
class Case:
    """One way to train: a chain of the trainer, and what the references say of the same rollouts."""

    pipeline: Pipeline
    credit: Callable[[Sequence[Rollout]], PerToken]
    average: of.Average
    surrogate: Surrogate
    reference: float = 0.0
    """Coefficient of the KL to the reference policy."""
    estimator: str = "k3"
    entropy: float = 0.0
    """Coefficient of the entropy bonus."""
    chosen: Callable[[Sequence[Rollout]], Sequence[Row]] | None = None
    """Which rows are trained. None: all."""
    mode: str = "decoupled"
    guard: str = ""
    """Gate of LLDS's guard, whose coefficient is 0.2. Empty: there is none."""


def rewards_of(rollouts: Sequence[Rollout]) -> dict[str, float]:
    return {rollout.run: rollout.reward for rollout in rollouts}


def at_the_end(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """What each turn is paid where only the last one is."""
    paid = {turn.key: 0.0 for rollout in rollouts for turn in rollout.turns}
    return paid | {rollout.turns[-1].key: rollout.reward for rollout in rollouts if rollout.turns}


def z_over_rollouts(rollouts: Sequence[Rollout]) -> PerToken:
    return spread(rollouts, by.over_rollouts(rollouts, rewards_of(rollouts)))


def z_under_limits(rollouts: Sequence[Rollout]) -> PerToken:
    return spread(rollouts, by.over_rollouts(rollouts, by.constrained(rollouts)))


def z_over_rounds(rollouts: Sequence[Rollout]) -> PerToken:
    return spread(rollouts, by.over_turns(rollouts, by.discounted_outcome(rollouts, 0.995), ddof=0))


def single_stream(rollouts: Sequence[Rollout]) -> PerToken:
    return spread(rollouts, by.of_rollouts(rollouts, by.SuccessTracker().credit(rollouts)))


def information(rollouts: Sequence[Rollout]) -> PerToken:
    start, after = of_runs("initial_answer_logprob", rollouts), of_turns("answer_logprob", rollouts)
    return spread(rollouts, by.turn_returns(rollouts, by.information_gain(rollouts, start, after), gamma=0.9))


def uncertainty(rollouts: Sequence[Rollout]) -> PerToken:
    plain = by.over_rollouts(rollouts, rewards_of(rollouts))
    return spread(rollouts, by.modulated(rollouts, plain, k=1.5, k_next=0.7, zeta=0.1))


def likelihood_weights(rollouts: Sequence[Rollout]) -> PerToken:
    return {row.key: [1.0] * len(row.tokens) for row in all_rows(rollouts)}


def two_levels(**how: Any) -> Callable[[Sequence[Rollout]], PerToken]:
    def credit(rollouts: Sequence[Rollout]) -> PerToken:
        values = {head: of_turns(head, rollouts) for head in ("value_high", "value_low", "value_switch", "value_keep")}
        values["value_final"] = of_runs("value_final", rollouts)
        return hierarchical(rollouts, at_the_end(rollouts), values, Setting(**how))

    return credit


def clip(low: float, high: float, dual: float | None = None) -> Surrogate:
    return lambda advantages, old, _: of.ppo(advantages, old, low, high, dual)


def hae(
    switch: str = "release", at_truncation: str = "off", gamma: float = 1.0, turn: float = 1.0, segment: float = 0.95
) -> Case:
    options = {
        "switch": switch,
        "at_truncation": at_truncation,
        "gamma": gamma,
        "lam_turn": turn,
        "lam_segment": segment,
    }
    return Case(
        a_recipe("hae", rewards=[{"name": "outcome"}], advantage={"name": "hae", **options}),
        two_levels(switch=switch, at_truncation=at_truncation, gamma=gamma, turn=turn, segment=segment),
        of.token_mean, clip(0.8, 1.2, 3.0), reference=0.01, entropy=0.001,
    )  # fmt: skip


def successes(rollouts: Sequence[Rollout]) -> Sequence[Row]:
    return [row for rollout in rollouts if rollout.reward >= 1 for row in rollout.rows]


def efficient(rollouts: Sequence[Rollout]) -> PerToken:
    return spread(rollouts, by.over_rollouts(rollouts, by.efficient(rollouts, calls_of(rollouts))))


def calls_of(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Tool calls."""
    return {run: float(round(-3 * value)) for run, value in of_runs("calls", rollouts).items()}


def balanced(target: float) -> Surrogate:
    def surrogate(advantages: PerToken, old: PerToken, rows: Sequence[Row]) -> of.Surrogate:
        start = {row.key: logp_of("start_logprobs", row) for row in rows}
        low, high = of.balanced_bounds(rows, advantages, old, start, target)
        return of.ppo(advantages, old, low, high, 3.0)

    return surrogate


def guarded(gate: str) -> Case:
    guard = {"name": "lld-guard", "coefficient": 0.2, "gate": gate}
    pipeline = a_pipeline(token_weights=[{"name": "rollout-mean"}], regularizers=[guard])
    return Case(pipeline, z_over_rollouts, of.rollout_mean, clip(0.8, 1.2), guard=gate)


def corrected(over: str, average: bool = False, mask: bool = False, low: float = 0.0, high: float = 1.2) -> Case:
    how = {
        "unit": over,
        "geometric_mean": average,
        "mode": "mask" if mask else "truncate",
        "min_ratio": low,
        "max_ratio": high,
    }
    pipeline = a_pipeline(token_weights=[{"name": "token-mean"}, {"name": "truncated-importance", **how}])

    def average_of(rows: Sequence[Row], rollouts: Sequence[Rollout]) -> of.Weights:
        old = logps("old_logprobs", rollouts)
        factor = of.importance(old, over=over, average=average, mask=mask, low=low, high=high)
        return of.times(of.token_mean, factor)(rows, rollouts)

    return Case(pipeline, z_over_rollouts, average_of, clip(0.8, 1.2))


def as_released(rollouts: Sequence[Rollout]) -> PerToken:
    """Flow-GRPO's released code: each turn is an entry with the rollout's reward; one alone has the reward itself."""
    paid = {turn.key: rollout.reward for rollout in rollouts for turn in rollout.turns}
    advantages = by.over_turns(rollouts, paid, ddof=1)
    for group in in_groups(rollouts):
        keys = [turn.key for rollout in group for turn in rollout.turns]
        advantages |= {keys[0]: paid[keys[0]]} if len(keys) == 1 else {}
    return spread(rollouts, advantages)


def distance(estimator: str) -> Case:
    term = {"name": "kl-ref", "estimator": estimator, "coefficient": 0.3}
    pipeline = a_pipeline(regularizers=[term])
    return Case(pipeline, z_over_rollouts, of.token_mean, clip(0.8, 1.2), reference=0.3, estimator=estimator)


CASES = {
    "flow-grpo": Case(
        a_recipe("flow-grpo"), z_over_rollouts, of.rollout_turn_token, clip(0.8, 1.2), reference=0.001
    ),
    "flow-grpo, bypass": Case(
        a_recipe("flow-grpo"), z_over_rollouts, of.rollout_turn_token, clip(0.8, 1.2), reference=0.001, mode="bypass"
    ),
    "flow-grpo, released": Case(
        a_recipe("flow-grpo-released"), as_released, of.token_mean, clip(0.8, 1.3, 3.0), reference=0.001
    ),
    "dual clip": Case(
        a_pipeline(surrogate={"name": "ppo-clip", "dual_clip": 1.3}),
        z_over_rollouts,
        of.token_mean,
        clip(0.8, 1.2, 1.3),
    ),
    **{f"distance {estimator}": distance(estimator) for estimator in ("k1", "k2", "k3")},
    "grpo": Case(a_recipe("grpo"), z_over_rollouts, of.row_mean, clip(0.8, 1.2), reference=0.04),
    "gspo": Case(
        a_recipe("gspo"), z_over_rollouts, of.row_mean, lambda a, old, _: of.gspo(a, old, 3e-4, 4e-4, "rows")
    ),
    "gspo, wide": Case(
        a_recipe("gspo", surrogate={"name": "gspo", "unit": "rows", "low": 0.1, "high": 0.1}),
        z_over_rollouts, of.row_mean, lambda a, old, _: of.gspo(a, old, 0.1, 0.1, "rows"),
    ),
    "eapo": Case(a_recipe("eapo"), z_over_rounds, of.row_mean, lambda a, old, _: of.gspo(a, old, 3e-4, 4e-4, "turns")),
    "eapo, wide": Case(
        a_recipe("eapo", surrogate={"name": "gspo", "unit": "turns", "low": 0.1, "high": 0.1}),
        z_over_rounds, of.row_mean, lambda a, old, _: of.gspo(a, old, 0.1, 0.1, "turns"),
    ),
    "dcpo": Case(a_recipe("dcpo"), z_under_limits, of.segment_sum, clip(0.8, 1.2), reference=0.001),
    "supo": Case(a_recipe("supo"), z_over_rollouts, of.token_mean, clip(0.8, 1.28), chosen=by.not_cut_off),
    "reinforce": Case(
        a_recipe("reinforce"), lambda rs: spread(rs, by.over_the_step(rs)), of.rollout_mean, clip(0.8, 1.2)
    ),
    "reinforce without a ratio": Case(
        a_recipe("reinforce", surrogate={"name": "reinforce"}),
        lambda rs: spread(rs, by.over_the_step(rs)), of.rollout_mean, lambda a, _, __: of.likelihood(a),
    ),
    "sft": Case(
        a_recipe("sft"), likelihood_weights, of.token_mean, lambda a, _, __: of.likelihood(a), chosen=successes
    ),
    "spo": Case(a_recipe("spo"), single_stream, of.token_mean, clip(0.8, 1.28)),
    "igpo": Case(
        a_pipeline(rewards=[{"name": "info-gain"}], advantage={"name": "turn-returns", "gamma": 0.9}),
        information, of.token_mean, clip(0.8, 1.2),
    ),
    "empg": Case(
        a_pipeline(advantage_modifiers=[{"name": "entropy-modulated", "k": 1.5, "k_next": 0.7, "zeta": 0.1}]),
        uncertainty, of.token_mean, clip(0.8, 1.2),
    ),
    "otc": Case(a_pipeline(rewards=[{"name": "tool-efficiency"}]), efficient, of.token_mean, clip(0.8, 1.2)),
    "bapo": Case(a_pipeline(surrogate={"name": "balanced-clip"}), z_over_rollouts, of.token_mean, balanced(0.5)),
    "bapo, greedy": Case(
        a_pipeline(surrogate={"name": "balanced-clip", "target_fraction": 0.62}),
        z_over_rollouts,
        of.token_mean,
        balanced(0.62),
    ),
    "llds": guarded("turns"),
    "llds by rows": guarded("rows"),
    "llds by tokens": guarded("tokens"),
    "truncated importance": corrected("tokens"),
    "truncated importance of turns": corrected("turns"),
    "truncated importance of rows": corrected("rows"),
    "truncated importance of rows' means": corrected("rows", average=True, high=1.05),
    "masked importance": corrected("tokens", mask=True, low=0.8),
    "masked importance of turns' means": corrected("turns", average=True, mask=True, low=0.9, high=1.1),
    "hae": hae(),
    "hae, fading": hae(gamma=0.95, turn=0.9, segment=0.8),
    "hae, cut as released": hae(at_truncation="last-value", gamma=0.95, turn=0.9, segment=0.8),
    "hae, cut with the next value": hae(at_truncation="next-value", gamma=0.95, turn=0.9, segment=0.8),
    "hae, switches of the paper": hae(switch="paper", gamma=0.95, turn=0.9, segment=0.8),
    "hae, switches of the paper, cut": hae(
        switch="paper", at_truncation="last-value", gamma=0.95, turn=0.9, segment=0.8
    ),
}  # fmt: skip


def start_logprobs(case: Case, rollouts: Sequence[Rollout]) -> PerToken:
    return logps("old_logprobs" if case.mode == "decoupled" else "", rollouts)


def expected_loss(case: Case, rollouts: Sequence[Rollout], rows: Sequence[Row]) -> Callable[[PerToken], float]:
    weights = case.average(rows, rollouts)
    advantages, old = case.credit(rollouts), start_logprobs(case, rollouts)
    surrogate = case.surrogate(advantages, old, rows)
    to_reference = of.kl(logps("ref_logprobs", rollouts), case.estimator)

    def value(logp: PerToken) -> float:
        loss = of.total(rows, weights, logp, surrogate)
        loss += case.reference * of.total(rows, weights, logp, to_reference) if case.reference else 0.0
        loss += (
            0.2 * of.total(rows, weights, logp, of.likelihood_guard(advantages, old, case.guard)) if case.guard else 0.0
        )
        return loss - case.entropy * of.total(rows, weights, entropies(rollouts), lambda _, at, h: h[at])

    return value
