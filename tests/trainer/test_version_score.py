"""How the score of an evaluated version is described."""

from typing import Any
from uuid import UUID

from offing_trainer.loop import VersionScore

VERSION: Any = None


def test_a_score_names_its_tasks_and_the_share_of_violations() -> None:
    score = VersionScore(VERSION, "sampled", {UUID(int=1): 1.0, UUID(int=2): 0.0}, 0.5)
    assert score.describe() == "mean reward 0.500 on 2 tasks, 50.0% violated a rule of the graph"


def test_without_a_reward_there_is_no_share_of_violations() -> None:
    assert VersionScore(VERSION, "sampled", {}, None).describe() == "no rollout has a reward"
