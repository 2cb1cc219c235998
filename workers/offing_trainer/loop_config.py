"""The configuration of a training loop: initial policy, collection, training job, evaluation tasks.

Its tables of training jobs are validated by `config`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.errors import InvalidInput
from offing.services.promotion_gate import Guard, parse_guard
from offing_trainer.config import CollectConfig, JudgeBudgetConfig


class _TomlTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StartConfig(_TomlTable):
    """An initial policy, if none is given: random weights, trained by SFT on demonstrations."""

    model_size: Literal["tiny", "small"] = "tiny"
    tokenizer: Literal["compact", "bytes"] = "compact"
    """`compact` has one token per word of small planners. `bytes` can encode any text."""
    demonstration_count: int = Field(default=4000, ge=1)
    """Number of demonstration rollouts."""
    worlds: tuple[str, ...] = ("train-1@500", "train-2@500", "train-3@500", "train-4@500")
    hops: tuple[int, int] = (1, 3)
    """Minimum and maximum number of lookups of their questions."""
    engine: str = "rules:random"
    """Engine that demonstrates the trained role."""
    sft: dict[str, Any] = Field(default_factory=dict)
    """Tables that override the recipe `sft`."""


class EvaluateConfig(_TomlTable):
    """The tasks on which versions are compared."""

    worlds: tuple[str, ...] = ("heldout-1@500",)
    dataset: str = ""
    """Dataset of stored tasks, instead of worlds."""
    scorers: dict[str, float | dict[str, Any]] = Field(default_factory=dict[str, "float | dict[str, Any]"])
    """Scorers as in `collect`. Empty means those of `collect`."""
    judge_budget: JudgeBudgetConfig | None = None
    """What the judges of one evaluation may use. `None` means no limit."""
    metric: str = ""
    """Scorer whose values decide at the gate. Empty means the reward."""
    not_worse: dict[str, float | str] = Field(default_factory=dict[str, "float | str"])
    """Metrics in which the new version must not be worse, with how much worse it may be: a number, or a share of the
    active version's mean such as "10%".
    """
    task_count: int = Field(default=200, ge=1)
    """Total number of tasks."""
    hops: tuple[int, int] = (1, 3)
    """Minimum and maximum number of lookups of their questions."""
    compositions: str = ""
    """Part of the questions by what they combine, such as `held-out`. Empty means all. Demonstrations and collected
    rollouts have the part that `collect` names.
    """
    seed: int = 0
    margin: float = 0.0
    """How far the new version's mean reward may be below the active version's for it to be promoted."""
    confident: bool = True
    """Whether the lower end of the difference's interval decides on the promotion, and not the mean difference."""

    def guards(self) -> list[Guard]:
        """Return the guards of `not_worse`. Raises InvalidInput for one that cannot be read."""
        return [parse_guard(f"{name}={margin}", "evaluate.not_worse") for name, margin in self.not_worse.items()]


class LoopConfig(_TomlTable):
    """The configuration of a training loop."""

    name: str
    """Name of the policy."""
    seed: int = 0
    policy: str = ""
    """NAME@VERSION of the initial policy. If empty, one is trained as `start` describes."""
    start: StartConfig = StartConfig()
    collect: CollectConfig
    train: dict[str, Any]
    """Tables of the training job, including its recipe. Policy, collection and seed are set by the loop."""
    evaluate: EvaluateConfig = EvaluateConfig()
    datasets: tuple[str, ...] = ()
    """Folders and files of datasets to store before the loop begins, relative to the file of the loop."""
    compare: dict[str, Any] = Field(default_factory=dict)
    """Tables of another training job on the same rollouts, for comparison. Empty means none."""

    @property
    def evaluation_scorers(self) -> dict[str, float | dict[str, Any]]:
        return self.evaluate.scorers or self.collect.scorers


def parse_loop_config(tables: Mapping[str, Any]) -> LoopConfig:
    """Validate the tables of a loop. Raises InvalidInput, which names the invalid entry."""
    try:
        config = LoopConfig.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Correct the entry. See deploy/loop.toml.") from error
    config.evaluate.guards()
    return config
