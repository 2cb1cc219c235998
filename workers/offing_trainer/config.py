"""The configuration of a training job: TOML over a recipe, read and validated.

`algorithm` names a recipe in the folder `recipes`; the entries of the file override it. This module
only reads the names of plug-ins. `pipeline` checks them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any, Literal, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from offing.core.errors import InvalidInput
from offing.core.judge_budget import JudgeBudget
from offing_trainer.learner.settings import LearnerSettings
from offing_trainer.selectors.learning_potential import PotentialOptions


class _TomlTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PluginConfig(BaseModel):
    """A plug-in by name. All other keys are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class RegularizerConfig(PluginConfig):
    """A regularizer with its coefficient."""

    coefficient: float = Field(default=1.0, ge=0)


class PipelineConfig(_TomlTable):
    """The plug-ins in order. A kind that allows one plug-in takes a table or a list of one."""

    view: tuple[PluginConfig, ...] = (PluginConfig(name="policy-turns"),)
    rewards: tuple[PluginConfig, ...] = ()
    """Applied in order, each to the result of the one before. Empty means the finalized reward."""
    selectors: tuple[PluginConfig, ...] = ()
    """Selectors of groups and of rows. Within each stage they are applied in this order."""
    advantage: tuple[PluginConfig, ...] = ()
    advantage_modifiers: tuple[PluginConfig, ...] = ()
    token_weights: tuple[PluginConfig, ...] = ()
    """Their weights are multiplied."""
    surrogate: tuple[PluginConfig, ...] = ()
    regularizers: tuple[RegularizerConfig, ...] = ()

    @field_validator("*", mode="before")
    @classmethod
    def _wrap_single(cls, value: Any) -> Any:
        return (value,) if isinstance(value, (Mapping, PluginConfig)) else value


class DataConfig(_TomlTable):
    """Which stored groups are trained, and how many make a training step."""

    graph: str = ""
    """Empty means any graph. The same holds for `dataset` and `split`."""
    roles: tuple[str, ...] = ()
    """Roles whose segments are trained. Empty means all roles that have tokens of a policy."""
    rollout_batches: tuple[UUID, ...] = ()
    """Ids of rollout batches. Empty means any."""
    dataset: str = ""
    split: str = ""
    tags: tuple[str, ...] = ()
    """Tags that the group or its task must have. All of them are required."""
    since: datetime | None = None
    """Only groups that became complete at this time or later."""
    group_size: int | None = Field(default=None, ge=1)
    """Number of rollouts per group, if it is known in advance. `None` means that groups may have any size."""
    max_version_lag: int | None = Field(default=1, ge=0)
    """Maximum number of versions that a rollout's policy may be behind the initial one.
    Older rollouts are stale. `None` means no limit.
    """
    groups_per_step: int = Field(default=32, ge=1)
    min_informative_groups: int = Field(default=1, ge=0)
    """Minimum number of groups with different rewards in a step.
    A step waits for them. `0` means that it does not wait.
    """
    max_groups_per_step: int | None = Field(default=None, ge=1)
    """Maximum number of groups per step, even if too few of them are informative.
    `None` means four times `groups_per_step`.
    """
    data_passes: int = Field(default=1, ge=1)
    """How often the job goes through all groups."""
    include_quarantined: bool = False
    """Also train rows that are in quarantine."""
    answer_prefix: str = Field(default="The answer is:\n", min_length=1)
    """Text before a task's reference answer, where a plug-in needs the probability of that answer.
    It should match the way in which the trained role writes an answer.
    """


class LearnerConfig(LearnerSettings):
    """How weights are updated: the learner's settings and the minibatch split."""

    minibatches: int = Field(default=1, ge=1)
    """Number of optimizer steps over which the rows of a training step are split."""
    epochs: int = Field(default=1, ge=1)
    """How often each row is trained in a training step."""
    minibatch_unit: Literal["rollouts", "rows"] = "rollouts"
    """The unit that stays together in one minibatch."""
    mode: Literal["bypass", "decoupled"] = "bypass"
    """Which old logprobs a clip uses.
    `bypass` takes the recorded ones. `decoupled` computes them under the weights at the start of the
    step, which costs a forward pass.
    """
    value_clip: float | None = Field(default=0.5, gt=0)
    """Maximum useful change of a value from its old value, as in PPO. `None` means no clipping."""
    value_coefficients: dict[str, float] = Field(default_factory=dict[str, float])
    """Loss coefficient of each critic column. The default is 1."""
    optimizer_state_every_steps: int = Field(default=1, ge=1)
    """Number of training steps between two writings of the optimizer's moments, which take twice the space of the
    weights. Weights are written with every step. A job that continues after a crash uses the last moments that were
    written, so it ends with the weights of an uninterrupted job only if this is 1.
    """


class GuardConfig(_TomlTable):
    """Limits beyond which a job stops and returns to its last good checkpoint. `None` disables a guard."""

    max_entropy_drop: float | None = Field(default=0.8, gt=0)
    """Maximum drop of the mean entropy since the first training step.
    It is a fraction of the entropy at that step.
    """
    max_entropy_rise: float | None = Field(default=2.0, gt=0)
    """Maximum rise of the mean entropy since the first training step.
    It is a fraction of the entropy at that step.
    """
    max_kl: float | None = Field(default=0.5, gt=0)
    """Maximum KL divergence from the sampling policy, in nats per token."""
    max_ratio: float | None = Field(default=3.0, gt=1)
    """Maximum of the mean importance ratio and of its inverse."""
    max_reward_drop: float | None = Field(default=None, gt=0)
    """Maximum drop of the mean reward since the first training step."""
    max_violation_rise: float | None = Field(default=None, gt=0)
    """Maximum rise of the fraction of rollouts that violated a rule of the graph, since the first training step."""


class CurriculumConfig(PotentialOptions):
    """How the collector weights tasks when it draws them."""

    candidates_per_task: int = Field(default=4, ge=1)
    """Number of tasks drawn uniformly for each task that is then selected by weight."""


class JudgeBudgetConfig(_TomlTable):
    """Limits of the calls of judges. A batch that has spent them stops, and nothing is counted as 0."""

    max_calls: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0)

    def to_budget(self) -> JudgeBudget:
        usd = None if self.max_cost_usd is None else Decimal(str(self.max_cost_usd))
        return JudgeBudget(self.max_calls, usd)


class CollectConfig(_TomlTable):
    """Rollouts that a job collects for each training step, with its current weights."""

    role: str
    """Role that is trained."""
    prompt_format: str = ""
    """Prompt format of the role. Empty means its default format."""
    graph: str = "agentflow"
    engines: dict[str, str] = Field(default_factory=dict)
    """Engines of the other roles, in the syntax of `offing ask --engine`.
    `all` stands for the roles that are not listed.
    """
    worlds: tuple[str, ...] = ()
    """Synthetic worlds that provide the tasks. The steps use them in turn."""
    hops: tuple[int, int] = (1, 4)
    """Minimum and maximum number of lookups of a world's questions."""
    question_kinds: tuple[str, ...] = ()
    """Kinds of a world's questions. Empty means all kinds."""
    compositions: str = ""
    """Part of a world's questions by what they combine, such as `trained`. Empty means all."""
    dataset: str = ""
    """Dataset of stored tasks, instead of worlds."""
    curriculum: CurriculumConfig | None = None
    """Prefer tasks that are neither always solved nor never solved. `None` draws tasks uniformly."""
    group_size: int = Field(default=8, ge=1, le=256)
    max_turns: int = Field(default=12, ge=1)
    max_attempts: int = Field(default=3, ge=1, le=10)
    scorers: dict[str, float | dict[str, Any]] = Field(default_factory=dict[str, "float | dict[str, Any]"])
    """Scorers by name: a weight, or a table with `weight` and the options of the scorer. A list of names gives each
    the weight 1. Empty means `exact_match`.
    """
    judge_budget: JudgeBudgetConfig | None = None
    """What the judges of all batches of the job may use together. `None` means no limit."""
    judge_budget_per_batch: JudgeBudgetConfig | None = None
    """What the judges of one batch may use. `None` means no limit but that of the job."""
    max_corrections: int = Field(default=0, ge=0, le=5)
    """How often a role call is repeated after an invalid output."""
    max_tokens: int = Field(default=2048, ge=1)
    """Maximum tokens of a completion of the trained role, also in evaluations.
    A policy that does not stop delays a whole step until this limit.
    """

    @field_validator("scorers", mode="before")
    @classmethod
    def _weight_names(cls, value: Any) -> Any:
        return dict.fromkeys(cast("Sequence[str]", value), 1.0) if isinstance(value, (list, tuple)) else value

    @model_validator(mode="after")
    def _check_task_source(self) -> "CollectConfig":
        if bool(self.worlds) == bool(self.dataset):
            raise ValueError("set either `worlds` or `dataset`, not both")
        return self


class TrainConfig(_TomlTable):
    """The configuration of a training job."""

    policy: str
    """NAME@VERSION of the initial policy."""
    algorithm: str = ""
    """The recipe that the configuration is based on, for display. Empty means none."""
    name: str = ""
    """Name of the resulting policy. Empty means the name of `policy`."""
    reference_policy: str = ""
    """NAME@VERSION of the reference policy of regularizers. Empty means `policy`."""
    data: DataConfig = DataConfig()
    collect: CollectConfig | None = None
    """`None` means that the job trains on stored rollouts."""
    pipeline: PipelineConfig
    learner: LearnerConfig = LearnerConfig()
    guards: GuardConfig = GuardConfig()
    max_steps: int | None = Field(default=None, ge=1)
    """Maximum number of training steps. `None` means until no data is left."""
    sinks: tuple[str, ...] = ()
    """Where metrics are sent besides the database and a file:
    `tensorboard`, `mlflow`, `wandb` or `trackio`.
    """

    @model_validator(mode="after")
    def _check_max_steps(self) -> "TrainConfig":
        if self.collect is not None and self.max_steps is None:
            raise ValueError("a job with `collect` needs `max_steps`, or it never ends")
        return self


RECIPE_DIR = files("offing_trainer") / "recipes"


def list_recipes() -> tuple[str, ...]:
    return tuple(
        sorted(path.name.removesuffix(".toml") for path in RECIPE_DIR.iterdir() if path.name.endswith(".toml"))
    )


def load_recipe(name: str) -> dict[str, Any]:
    """Return the tables of a recipe, merged over the recipe that it is based on. Raises InvalidInput."""
    if name not in list_recipes():
        raise InvalidInput("algorithm", f"there is no recipe {name}", f"Use one of {', '.join(list_recipes())}.")
    return apply_recipe(tomllib.loads((RECIPE_DIR / f"{name}.toml").read_text("utf-8")))


def apply_recipe(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables over the recipe that they name. See `merge_tables`."""
    name = tables.get("algorithm")
    return merge_tables(load_recipe(name), tables) if isinstance(name, str) and name else dict(tables)


def merge_tables(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables recursively. All other values are replaced.

    The table of a plug-in is replaced as a whole if it names another plug-in.
    """
    merged = dict(base)
    for key, value in overrides.items():
        base_value = merged.get(key)
        merged[key] = (
            merge_tables(_as_mapping(base_value), _as_mapping(value)) if _is_mergeable(base_value, value) else value
        )
    return merged


def _is_mergeable(base_value: Any, value: Any) -> bool:
    if not isinstance(base_value, Mapping) or not isinstance(value, Mapping):
        return False
    return _as_mapping(value).get("name", _as_mapping(base_value).get("name")) == _as_mapping(base_value).get("name")


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value)


def parse_config(tables: Mapping[str, Any]) -> TrainConfig:
    """Validate the tables of a training job. Raises InvalidInput, which names the invalid entry."""
    try:
        return TrainConfig.model_validate(apply_recipe(tables))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(where, first["msg"].lower(), "Correct the entry. The recipes show all entries.") from error
