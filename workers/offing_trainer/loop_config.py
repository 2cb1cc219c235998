"""A loop's configuration: its start, its collection, its training job, its frozen tasks.

The only home of its shape and defaults; the tables of training jobs inside are read by `config`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.errors import InvalidInput
from offing_trainer.config import CollectConfig


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StartConfig(_Table):
    """A policy to begin with, where there is none: random weights that imitate demonstrations."""

    size: Literal["tiny", "small"] = "tiny"
    words: Literal["compact", "bytes"] = "compact"
    """compact: a token for each word of small planners; bytes: any text."""
    demonstrations: int = Field(default=4000, ge=1)
    """Rollouts."""
    worlds: tuple[str, ...] = ("train-1@500", "train-2@500", "train-3@500", "train-4@500")
    hops: tuple[int, int] = (1, 3)
    """Of their questions."""
    engine: str = "rules:random"
    """Who demonstrates the role that is to be trained."""
    learning: dict[str, Any] = Field(default_factory=dict)
    """Tables over the recipe `sft`."""


class EvaluateConfig(_Table):
    """Frozen tasks, on which versions are compared."""

    worlds: tuple[str, ...] = ("heldout-1@500",)
    count: int = Field(default=200, ge=1)
    """Tasks in all."""
    hops: tuple[int, int] = (1, 3)
    """Of their questions."""
    seed: int = 0
    margin: float = 0.0
    """How far below the active version the new one's mean reward may lie and still take over."""


class LoopConfig(_Table):
    """A whole loop."""

    name: str
    """Of the policy."""
    seed: int = 0
    policy: str = ""
    """NAME@VERSION to begin with. Empty: one is made, see `start`."""
    start: StartConfig = StartConfig()
    collect: CollectConfig
    train: dict[str, Any]
    """Tables of a training job, its recipe included; policy, collection and seed come from here."""
    evaluate: EvaluateConfig = EvaluateConfig()
    compare: dict[str, Any] = Field(default_factory=dict)
    """Tables of another training job on the rollouts that the first one collected. Empty: none."""


def loop_config(tables: Mapping[str, Any]) -> LoopConfig:
    """Raises InvalidInput that names the entry."""
    try:
        return LoopConfig.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Mend the entry; see deploy/loop.toml.") from error
