"""The loss of an optimiser step, part by part: what a learner calls with what it forwarded."""

from dataclasses import replace

import numpy as np

from offing_trainer.batch import Batch, Floats, Places
from offing_trainer.chain import Chain
from offing_trainer.critic import value_loss
from offing_trainer.figures import Tally
from offing_trainer.learner.contract import Derivatives, Forwarded, LossOf
from offing_trainer.seam import LossGiven, Seam, SurveyGiven
from offing_trainer.step import Prepared, a_token, step_given
from offing_trainer.turns import turns_in


def loss_of(chain: Chain, ready: Prepared, step: int, tally: Tally | None = None) -> LossOf:
    """The loss of an optimiser step's rows, for `learner.forward_backward(ready.rows_of(step), ...)`.

    However the rows are cut into parts, values and derivatives add up to the same. `tally` is told about each part.
    """
    rows = ready.steps[step]
    whole = step_given(ready, rows, ready.surveyed[step])
    live = np.flatnonzero(np.isin(rows, ready.live))
    asked = _asked(ready, whole.batch)

    def loss(places: Places, forwarded: Forwarded) -> Derivatives:
        given = _part_given(whole, ready.weights[step], live[places], forwarded)
        found = _derived(chain, given, tally)
        if tally is not None:
            tally.saw(given.batch, given.logp, given.entropy, given.columns)
        if not ready.targets or not forwarded.values:
            return found
        return _with_critic(ready, found, forwarded, turns_in(whole.batch, live[places]), asked, tally)

    return loss


def _part_given(whole: SurveyGiven, weight: Floats, rows: Places, forwarded: Forwarded) -> LossGiven:
    tokens = whole.batch.tokens_of(rows)
    columns = {name: column[tokens] if a_token(name) else column for name, column in whole.columns.items()}
    return LossGiven(
        batch=whole.batch.only(rows),
        logp=forwarded.logp,
        entropy=forwarded.entropy,
        advantage=whole.advantage[tokens],
        weight=weight[tokens],
        columns=columns,
        state=whole.state,
    )


def _derived(chain: Chain, given: LossGiven, tally: Tally | None) -> Derivatives:
    value, dlogp, dentropy = 0.0, np.zeros(len(given.logp)), np.zeros(len(given.logp))
    for link in (chain.only(Seam.SURROGATE), *chain.at(Seam.REGULARISE)):
        term = link.apply(given)
        value += link.coefficient * term.value
        dlogp += link.coefficient * term.dlogp
        dentropy += 0.0 if term.dentropy is None else link.coefficient * term.dentropy
        if tally is not None:
            tally.add({f"loss_{link.plugin.name}": term.value, **term.figures})
    if tally is not None:
        tally.add({"loss": value})
    return Derivatives(value, dlogp, dentropy if dentropy.any() else None)


def _asked(ready: Prepared, batch: Batch) -> int:
    """Turns of a step at which a critic is asked."""
    if not ready.targets or not batch.rows:
        return 0
    turns = turns_in(batch, np.arange(batch.rows))
    return int(np.any([~np.isnan(target[turns]) for target in ready.targets.values()], axis=0).sum())


def _with_critic(
    ready: Prepared, found: Derivatives, forwarded: Forwarded, turns: Places, asked: int, tally: Tally | None
) -> Derivatives:
    """Mean over the turns of the step at which a critic is asked."""
    heads = ready.targets.keys() & forwarded.values.keys()
    critic = value_loss(
        {head: forwarded.values[head] for head in sorted(heads)},
        {head: ready.targets[head][turns] for head in sorted(heads)},
        {head: ready.columns[head][turns] for head in sorted(heads & ready.columns.keys())},
        per_turn=1 / max(asked, 1),
        clip=ready.learner.value_clip,
        coefficients=ready.learner.value_coefficients,
    )
    if tally is not None:
        tally.add({"loss_critic": critic.value, **critic.figures})
    return replace(found, value=found.value + critic.value, dvalues=critic.dvalues)
