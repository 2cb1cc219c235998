"""Which tasks a collector takes next: those that the job neither solves nor fails for sure, as far as it tried them.

The only home of the job's own record of tasks, which is committed with each step beside what plug-ins remember,
whatever chain the job has. Weights and forgetting are those of single-stream policy optimization. Pure.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from offing.storage.training_groups import GroupHead
from offing_trainer.advantages.tracker import Tracker, newest, stored, tracked_of, unseen, updated
from offing_trainer.config import CurriculumConfig
from offing_trainer.seam import State
from offing_trainer.selections.learning_potential import potentials

CURRICULUM = "curriculum"
"""Table: by task, what counts for success and for failure, and the version that was seen last."""


def chosen(how: CurriculumConfig, state: State, candidates: Sequence[UUID], count: int, seed: int) -> list[UUID]:
    """So many of the candidates, each at most once, drawn by the weight of its task; in the order in which they came.

    The same for the same seed, state and candidates.
    """
    if len(candidates) <= count:
        return list(candidates)
    weight = potentials(how, state.get(CURRICULUM, {}), [str(task) for task in candidates])
    drawn = np.random.default_rng(seed).choice(len(candidates), count, replace=False, p=weight / weight.sum())
    return [candidates[n] for n in sorted(drawn.tolist())]


def recorded(how: CurriculumConfig, state: State, heads: Sequence[GroupHead]) -> dict[str, Any]:
    """The record with a step's groups in it. Rewards count as shares of a success, from 0 to 1; the unscored do not."""
    table, forgetting = dict(state.get(CURRICULUM, {})), Tracker(prior=how.prior, strength=how.strength)
    for head in heads:
        scores = [min(max(m.reward, 0.0), 1.0) for m in head.standing if m.reward is not None]
        if scores:
            known = tracked_of(table, str(head.task)) or unseen(how.prior, how.strength)
            now = updated(forgetting, known, sum(scores), len(scores), newest(head.policies))
            table[str(head.task)] = stored(now)
    return {CURRICULUM: table}
