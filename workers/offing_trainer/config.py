"""A training job's configuration: TOML with a recipe underneath, read and checked.

The only home of its shape and defaults. `algorithm` names a recipe of the folder `recipes`; what the file says goes
over it. Knows which plug-ins are asked for by name, not what they do: see `chain`.
"""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from offing.core.errors import InvalidInput
from offing_trainer.learner.settings import Settings
from offing_trainer.selections.learning_potential import Potential


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Asked(BaseModel):
    """A plug-in by name; what else is there are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class AskedTerm(Asked):
    """A regulariser."""

    coefficient: float = Field(default=1.0, ge=0)


class ChainConfig(_Table):
    """Which plug-ins, in their order. A seam that takes one may be written as a table or as a list of one."""

    view: tuple[Asked, ...] = (Asked(name="policy-turns"),)
    reward: tuple[Asked, ...] = ()
    """In order, each on what the one before gave. Empty: the settled reward."""
    select: tuple[Asked, ...] = ()
    """Groups and rows, each stage in this order."""
    advantage: tuple[Asked, ...] = ()
    modifiers: tuple[Asked, ...] = ()
    weight: tuple[Asked, ...] = ()
    """Factors."""
    surrogate: tuple[Asked, ...] = ()
    regularise: tuple[AskedTerm, ...] = ()

    @field_validator("*", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return (value,) if isinstance(value, (Mapping, Asked)) else value


class DataConfig(_Table):
    """Which stored groups are trained on, and how many make a step."""

    graph: str = ""
    """Empty: any; so for dataset and split."""
    roles: tuple[str, ...] = ()
    """Whose segments; empty: all that have tokens of a policy."""
    batches: tuple[UUID, ...] = ()
    """Collections. Empty: any."""
    dataset: str = ""
    split: str = ""
    tags: tuple[str, ...] = ()
    """All of them, of group or task."""
    since: datetime | None = None
    """Complete at that time or later."""
    group_size: int | None = Field(default=None, ge=1)
    """Rollouts a group is collected with, where it is known before. None: whatever the groups have."""
    max_version_lag: int | None = Field(default=1, ge=0)
    """Versions that a rollout's policy may be older than the one being trained; older ones are stale. None: any."""
    groups_per_step: int = Field(default=32, ge=1)
    minimum_informative_groups: int = Field(default=1, ge=0)
    """A step waits until so many of its groups have rewards that differ. 0: it does not matter."""
    most_groups_per_step: int | None = Field(default=None, ge=1)
    """However few are informative. None: four times `groups_per_step`."""
    passes: int = Field(default=1, ge=1)
    """How often the groups are gone through."""
    quarantined: bool = False
    """Train rows whose record is in doubt too."""
    answer_introduction: str = Field(default="The answer is:\n", min_length=1)
    """How the policy's words begin before a task's reference answer, where a plug-in asks how likely that is. Best in
    the form in which the trained role gives an answer."""


class LearnerConfig(Settings):
    """How weights are changed: what `learner.settings` says, and how rows are dealt out to optimiser steps."""

    minibatches: int = Field(default=1, ge=1)
    """Optimiser steps that the rows of a step are dealt out to."""
    epochs: int = Field(default=1, ge=1)
    """How often each row is trained in a step."""
    deal: Literal["rollouts", "rows"] = "rollouts"
    """What is dealt out whole."""
    mode: Literal["bypass", "decoupled"] = "bypass"
    """What a clip is anchored at. bypass: the log-probabilities as sampled; decoupled: those under the weights that a
    step begins with, which costs a forward pass."""
    value_clip: float | None = Field(default=0.5, gt=0)
    """How far from its old value a value may go before it gains nothing. None: any."""
    value_coefficients: dict[str, float] = Field(default_factory=dict[str, float])
    """By column of the critic. Not named: 1."""


class GuardConfig(_Table):
    """When a job goes back to its last good checkpoint and stops. None: not watched."""

    entropy_drop: float | None = Field(default=0.8, gt=0)
    """Most that the mean entropy may fall below the first step's, as a share of it."""
    entropy_rise: float | None = Field(default=2.0, gt=0)
    """Most that it may rise above it, as a share of it."""
    kl_limit: float | None = Field(default=0.5, gt=0)
    """Nats a token from the policy that sampled."""
    ratio_limit: float | None = Field(default=3.0, gt=1)
    """Mean importance ratio, and its inverse."""
    reward_drop: float | None = Field(default=None, gt=0)
    """Most that the mean reward may fall below the first step's."""


class CurriculumConfig(Potential):
    """By which weight a collector draws tasks."""

    candidates: int = Field(default=4, ge=1)
    """Tasks that are drawn alike for each one that is then chosen by its weight."""


class CollectConfig(_Table):
    """Rollouts that a job has made for each of its steps, by the weights that it has by then: the closed loop."""

    role: str
    """Whose answers are trained."""
    form: str = ""
    """The role's other rendering. Empty: its first."""
    graph: str = "agentflow"
    engines: dict[str, str] = Field(default_factory=dict)
    """Of the other roles, as `offing ask --engine` takes them; `all` stands for those that are not named."""
    worlds: tuple[str, ...] = ()
    """Made-up worlds that give the tasks, one a step in turn."""
    hops: tuple[int, int] = (1, 4)
    """Fewest and most look-ups of a world's questions."""
    kinds: tuple[str, ...] = ()
    """Of a world's questions. Empty: all."""
    dataset: str = ""
    """Stored tasks, in place of worlds."""
    curriculum: CurriculumConfig | None = None
    """Tasks that are neither solved nor hopeless come first. None: all alike."""
    group_size: int = Field(default=8, ge=1, le=256)
    turns: int = Field(default=12, ge=1)
    attempts: int = Field(default=3, ge=1, le=10)
    scorers: tuple[str, ...] = ()
    """Empty: exact_match."""
    reasks: int = Field(default=0, ge=0, le=5)
    """How often an answer that cannot be used is asked for again."""
    max_tokens: int = Field(default=2048, ge=1)
    """Of an answer of the trained role, in evaluations too. A policy that does not end holds a whole step up until
    then."""

    @model_validator(mode="after")
    def _says_where_tasks_are(self) -> "CollectConfig":
        if bool(self.worlds) == bool(self.dataset):
            raise ValueError("name worlds or a dataset, one of both")
        return self


class TrainConfig(_Table):
    """A whole job."""

    policy: str
    """NAME@VERSION to begin with."""
    algorithm: str = ""
    """The recipe underneath, to be shown. Empty: none."""
    name: str = ""
    """Of the policy that it makes. Empty: that of `policy`."""
    reference: str = ""
    """NAME@VERSION that regularisers hold on to. Empty: `policy`."""
    data: DataConfig = DataConfig()
    collect: CollectConfig | None = None
    """None: trains on what is stored."""
    chain: ChainConfig
    learner: LearnerConfig = LearnerConfig()
    guards: GuardConfig = GuardConfig()
    steps: int | None = Field(default=None, ge=1)
    """Steps of the job at most. None: until there is no data left."""
    sinks: tuple[str, ...] = ()
    """Where figures go beside the database and a file: tensorboard, mlflow, wandb, trackio."""

    @model_validator(mode="after")
    def _ends(self) -> "TrainConfig":
        if self.collect is not None and self.steps is None:
            raise ValueError("a job that collects needs `steps`, or it never ends")
        return self


RECIPES = files("offing_trainer") / "recipes"


def recipe_names() -> tuple[str, ...]:
    return tuple(sorted(path.name.removesuffix(".toml") for path in RECIPES.iterdir() if path.name.endswith(".toml")))


def recipe(name: str) -> dict[str, Any]:
    """A recipe's tables, on their own or over the recipe that it names in turn. Raises InvalidInput."""
    if name not in recipe_names():
        raise InvalidInput("algorithm", f"there is no recipe {name}", f"Choose one of {', '.join(recipe_names())}.")
    return over_recipe(tomllib.loads((RECIPES / f"{name}.toml").read_text("utf-8")))


def over_recipe(tables: Mapping[str, Any]) -> dict[str, Any]:
    """What is said over what the recipe named there says; see `laid_over`."""
    name = tables.get("algorithm")
    return laid_over(recipe(name), tables) if isinstance(name, str) and name else dict(tables)


def laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, all else replaced; so is a plug-in's table when it names another plug-in."""
    merged = dict(under)
    for key, value in over.items():
        before = merged.get(key)
        merged[key] = laid_over(_table(before), _table(value)) if _goes_over(before, value) else value
    return merged


def _goes_over(before: Any, value: Any) -> bool:
    if not isinstance(before, Mapping) or not isinstance(value, Mapping):
        return False
    return _table(value).get("name", _table(before).get("name")) == _table(before).get("name")


def _table(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value)


def config_of(tables: Mapping[str, Any]) -> TrainConfig:
    """Raises InvalidInput that names the entry."""
    try:
        return TrainConfig.model_validate(over_recipe(tables))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Mend the entry; the recipes show every one.") from error
