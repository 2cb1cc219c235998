"""What happens in a step of training, from stored groups to derivatives. Pure: no store, no weights, no clock.

    seen = viewed(chain, groups, state, rng)           # rows that a view shows, as arrays
    chosen = prepared(chain, seen, early, ...)         # credit; which rows are trained, in which optimiser steps
    ready = measured(chain, chosen, late)              # how much each token counts
    for step in range(len(ready.steps)):
        learner.forward_backward(ready.rows_of(step), loss_of(chain, ready, step, tally))

Somebody with weights computes the columns in between: `chain.needed_columns` says which, `columns_of` lays them out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.trajectory import Outcome
from offing_trainer import figures
from offing_trainer.batch import OUTCOMES, Batch, Bits, Floats, Group, Places, Sample, batch_of
from offing_trainer.chain import Chain, needed_columns
from offing_trainer.config import LearnerConfig
from offing_trainer.dealing import dealt
from offing_trainer.figures import Tally
from offing_trainer.learner.contract import Forwarded
from offing_trainer.losses import loss_of
from offing_trainer.seam import (
    Advantage,
    AdvantageGiven,
    Columns,
    GroupsGiven,
    RewardGiven,
    Rewards,
    RowsGiven,
    Seam,
    State,
    SurveyGiven,
    WeightGiven,
)
from offing_trainer.step import (
    CUT,
    FAULT,
    KEPT,
    NO_TOKENS,
    RATIO,
    SHORT,
    UNSELECTED,
    ZERO,
    Prepared,
    Viewed,
    a_token,
    rows_at,
    step_given,
)
from offing_trainer.turns import turns_in


def viewed(
    chain: Chain,
    groups: Sequence[Group],
    state: State,
    rng: np.random.Generator,
    *,
    facts: Mapping[UUID, Mapping[str, float]] | None = None,
    earlier: Mapping[str, Sample] | None = None,
) -> Viewed:
    """Rows as arrays. Faults and rollouts without a score are out, and groups that are too small for the chain then.

    `facts`: what is known of each run, see `Batch.facts`. `earlier`: see `GroupsGiven`. Raises MixedPolicies, and
    InvalidInput for facts that the chain needs and nobody gave.
    """
    fates: dict[str, str] = {}
    whole = [group for group in (_standing(chain, group, fates) for group in groups) if group.samples]
    shown: Sequence[Group] = chain.only(Seam.VIEW).apply(whole)
    for link in chain.at(Seam.SELECT, "groups"):
        shown, changed = link.apply(GroupsGiven(shown, state, rng, earlier or {}))
        state = {**state, **changed}
    left = {str(s.episode.run) for g in shown for s in g.samples}
    fates |= {str(s.episode.run): UNSELECTED for g in whole for s in g.samples if str(s.episode.run) not in left}
    rows = tuple(row for group in shown for sample in group.samples for row in sample.rows)
    batch = batch_of(shown, _facts(chain, shown, facts or {}))
    return Viewed(tuple(shown), batch, rows, state, fates, figures.of_groups(whole))


def _standing(chain: Chain, group: Group, fates: dict[str, str]) -> Group:
    """A group without what says nothing about the policy; without anything when too little is left."""
    kept: list[Sample] = []
    for sample in group.samples:
        if sample.episode.outcome == Outcome.INFRA_ERROR:
            fates[str(sample.episode.run)] = FAULT
        elif sample.episode.reward is None and not chain.unscored:
            fates[str(sample.episode.run)] = UNSELECTED
        else:
            kept.append(sample)
    if len(kept) < chain.smallest_group:
        fates |= {str(sample.episode.run): SHORT for sample in kept}
        kept = []
    return replace(group, samples=tuple(kept))


def _facts(chain: Chain, groups: Sequence[Group], facts: Mapping[UUID, Mapping[str, float]]) -> dict[str, list[float]]:
    runs = [sample.episode.run for group in groups for sample in group.samples]
    known = {name for found in facts.values() for name in found}
    if runs and (missing := sorted(chain.facts - known)):
        raise InvalidInput("chain", f"it needs {missing[0]} of each rollout, and nothing says it", "Leave it out.")
    return {name: [facts.get(run, {}).get(name, np.nan) for run in runs] for name in sorted(known | chain.facts)}


def prepared(
    chain: Chain,
    seen: Viewed,
    columns: Columns,
    rng: np.random.Generator,
    *,
    progress: float = 0.0,
    learner: LearnerConfig | None = None,
) -> Prepared:
    """Credit, and the rows that are trained. `columns`: the early ones, of the viewed batch."""
    how, batch = learner or LearnerConfig(), seen.batch
    known = _anchored(batch, columns, how)
    _refuse_absent(needed_columns(chain, how.mode).early, known)
    _refuse_unknown(chain, batch, how)
    rewards, state = _rewarded(chain, batch, known, seen.state)
    credit, state = _credited(chain, AdvantageGiven(batch, rewards, known, state))
    rows, state = _chosen(chain, RowsGiven(batch, rewards, credit.token, progress, state, rng))
    tokens, trained = batch.tokens_of(rows), batch.only(rows)
    advantage = credit.token[tokens]
    return Prepared(
        batch=trained,
        rows=rows_at(seen.rows, rows),
        live=np.flatnonzero(_live(chain, trained, advantage, credit)),
        rewards=rewards,
        advantage=advantage,
        targets=credit.targets,
        steps=dealt(trained.row_rollout, rng, minibatches=how.minibatches, epochs=how.epochs, by=how.deal),
        columns={name: column[tokens] if a_token(name) else column for name, column in known.items()},
        progress=progress,
        learner=how,
        state=state,
        fates={**seen.fates, **_fates(batch, trained, advantage)},
        figures={**seen.figures, **figures.of_credit(trained, rewards, advantage)},
    )


def _anchored(batch: Batch, columns: Columns, how: LearnerConfig) -> Columns:
    return {**columns, "logp_old": batch.behaviour} if how.mode == "bypass" else columns


def _rewarded(chain: Chain, batch: Batch, columns: Columns, state: State) -> tuple[Rewards, State]:
    rewards = Rewards(batch.reward, np.zeros(batch.turns))
    for link in chain.at(Seam.REWARD):
        rewards, changed = link.apply(RewardGiven(batch, rewards, columns, state))
        state = {**state, **changed}
    return rewards, state


def _credited(chain: Chain, given: AdvantageGiven) -> tuple[Advantage, State]:
    credit, changed = chain.only(Seam.ADVANTAGE).apply(given)
    for link in chain.at(Seam.MODIFIER):
        credit = replace(credit, token=link.apply(given, credit.token))
    return credit, {**given.state, **changed}


def _chosen(chain: Chain, given: RowsGiven) -> tuple[Places, State]:
    """Each selection sees what those before it left."""
    rows = np.arange(given.batch.rows)
    state = given.state
    for link in chain.at(Seam.SELECT, "rows"):
        left, credit = given.batch.only(rows), given.advantage[given.batch.tokens_of(rows)]
        chosen, changed = link.apply(replace(given, batch=left, advantage=credit, state=state))
        rows, state = rows[chosen], {**state, **changed}
    return rows, state


def _live(chain: Chain, batch: Batch, advantage: Floats, credit: Advantage) -> Bits:
    """All rows, where more than the surrogate looks at them; else those with an advantage."""
    watched = any(link.plugin.survey for link in chain.links)
    if chain.at(Seam.REGULARISE) or credit.targets or watched:
        return np.ones(batch.rows, np.bool_)
    return np.bincount(batch.token_row[advantage != 0], minlength=batch.rows) > 0


def _fates(batch: Batch, trained: Batch, advantage: Floats) -> dict[str, str]:
    """A rollout that is replayed was decided on when it came first."""
    had = np.bincount(batch.row_rollout, minlength=batch.rollouts) > 0
    left = np.bincount(trained.row_rollout, minlength=batch.rollouts) > 0
    paid = np.bincount(trained.token_rollout[advantage != 0], minlength=batch.rollouts) > 0
    cut = batch.outcome == OUTCOMES[Outcome.TRUNCATED.value]
    fate = np.select([~had, paid, left, cut], [NO_TOKENS, KEPT, ZERO, CUT], UNSELECTED)
    decided = zip(batch.rollout, fate.tolist(), batch.replayed.tolist(), strict=True)
    return {run: found for run, found, replayed in decided if not replayed}


def measured(chain: Chain, chosen: Prepared, columns: Columns) -> Prepared:
    """How much each token counts in its optimiser step. `columns`: the late ones, of the live rows."""
    known = {**chosen.columns, **{name: _widened(chosen, name, column) for name, column in columns.items()}}
    needed = needed_columns(chain, chosen.learner.mode)
    _refuse_absent(needed.early | needed.late, known)
    ready = replace(chosen, columns=known)
    state, surveyed, weights = chosen.state, list[State](), list[Floats]()
    for rows in chosen.steps:
        given = step_given(ready, rows, state)
        for link in (*chain.at(Seam.SURROGATE), *chain.at(Seam.REGULARISE)):
            if link.plugin.survey:
                state = {**state, **link.plugin.survey(link.options, replace(given, state=state))}
        surveyed.append(state)
        weights.append(_weighed(chain, given))
    fates = {**chosen.fates, **dict.fromkeys(_weightless(chosen, weights), RATIO)}
    return replace(ready, weights=tuple(weights), surveyed=tuple(surveyed), state=state, fates=fates)


def _weightless(chosen: Prepared, weights: Sequence[Floats]) -> list[str]:
    """Rollouts with credit of which no token counts, because weights left all of them out."""
    batch, counted = chosen.batch, np.zeros(chosen.batch.rollouts, np.bool_)
    for rows, weight in zip(chosen.steps, weights, strict=True):
        tokens = batch.tokens_of(rows)
        counted[batch.token_rollout[tokens[(weight > 0) & (chosen.advantage[tokens] != 0)]]] = True
    return [run for nth, run in enumerate(batch.rollout) if chosen.fates.get(run) == KEPT and not counted[nth]]


def _widened(chosen: Prepared, name: str, column: Floats) -> Floats:
    """A column of the live rows as one of all rows; the others are as if nothing had changed."""
    if not a_token(name) or len(chosen.live) == chosen.batch.rows:
        return column
    wide = chosen.batch.behaviour.copy()
    wide[chosen.batch.tokens_of(chosen.live)] = column
    return wide


def _weighed(chain: Chain, given: SurveyGiven) -> Floats:
    weight = np.ones(given.batch.tokens)
    for link in chain.at(Seam.WEIGHT):
        weight = weight * link.apply(WeightGiven(given.batch, given.advantage, given.columns, given.progress))
    return weight


def columns_of(batch: Batch, forwarded: Forwarded, names: frozenset[str], rows: Places | None = None) -> Columns:
    """What one forward says of columns: `logp_...` of its tokens, and the critic's values.

    `rows`: what was forwarded, as rows of the batch; None: all of them, in their order.
    """
    turns = turns_in(batch, np.arange(batch.rows) if rows is None else rows)
    found: dict[str, Floats] = {name: forwarded.logp for name in names if name.startswith("logp_")}
    for name in names & forwarded.values.keys():
        found[name] = np.full(batch.turns, np.nan)
        found[name][turns] = forwarded.values[name]
    return found


def _refuse_absent(needed: frozenset[str], columns: Mapping[str, Any]) -> None:
    if missing := sorted(needed - columns.keys()):
        raise InvalidInput("columns", f"{missing[0]} is needed and was not computed", "See needed_columns.")


def _refuse_unknown(chain: Chain, batch: Batch, how: LearnerConfig) -> None:
    anchored = how.mode == "bypass" and chain.needs("logp_old")
    needed = {"behaviour": anchored or chain.needs("behaviour"), "entropy": chain.needs("entropy")}
    for name, column in (("behaviour", batch.behaviour), ("entropy", batch.entropy)):
        if needed[name] and np.isnan(column).any():
            rows = len(np.unique(batch.token_row[np.isnan(column)]))
            raise InvalidInput(
                "chain",
                f"it needs {name} as sampled, which {rows} rows do not have",
                "Choose other rollouts or plug-ins.",
            )


__all__ = [
    "KEPT",
    "Prepared",
    "Tally",
    "Viewed",
    "a_token",
    "columns_of",
    "loss_of",
    "measured",
    "prepared",
    "viewed",
]
