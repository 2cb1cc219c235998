"""The configuration of a training loop: initial policy, collection, training job, evaluation tasks.

Its tables of training jobs are validated by `config`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.errors import InvalidInput
from offing_trainer.config import CollectConfig


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
    compare: dict[str, Any] = Field(default_factory=dict)
    """Tables of another training job on the same rollouts, for comparison. Empty means none."""


def parse_loop_config(tables: Mapping[str, Any]) -> LoopConfig:
    """Validate the tables of a loop. Raises InvalidInput, which names the invalid entry."""
    try:
        return LoopConfig.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Correct the entry. See deploy/loop.toml.") from error
