"""A pipeline of configured plug-ins, checked before any work starts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pydantic import ValidationError

from offing.core.errors import InvalidInput
from offing_trainer.config import PipelineConfig, PluginConfig, RegularizerConfig, TrainConfig
from offing_trainer.plugin import COLUMNS, SINGLE_KINDS, Plugin, PluginKind, PluginOptions, plugin_key
from offing_trainer.plugin_registry import PluginRegistry, load_registry
from offing_trainer.reference_answers import COLUMNS as OF_REFERENCES

RECORDED_COLUMNS = frozenset({"behavior_logprobs", "entropy"})
"""Columns that are recorded at sampling and are part of every batch."""

PRE_SELECTION_KINDS = frozenset({PluginKind.REWARD, PluginKind.ADVANTAGE, PluginKind.ADVANTAGE_MODIFIER})
"""Kinds of plug-ins whose columns are needed before the trained rows are selected."""

ROLLOUT_STATS_PREFIX = "rollout_stats."
"""Prefix of a rollout statistic among the columns that a plug-in needs."""


class InvalidPipelineError(InvalidInput):
    """These plug-ins cannot work together, or not with this configuration."""

    code = "invalid_pipeline"


@dataclass(frozen=True, slots=True)
class ConfiguredPlugin:
    """A plug-in with its options."""

    plugin: Plugin
    options: PluginOptions
    coefficient: float = 1.0
    """Coefficient of a regularizer."""

    @property
    def needs(self) -> frozenset[str]:
        more = self.plugin.needs_for_options
        return self.plugin.needs | (more(self.options) if more else frozenset[str]())

    def apply(self, *inputs: Any) -> Any:
        return self.plugin.apply(self.options, *inputs)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The plug-ins of a training job in order. `build_pipeline` checks and builds it."""

    plugins: tuple[ConfiguredPlugin, ...]

    def filter_plugins(self, kind: PluginKind, stage: str = "") -> tuple[ConfiguredPlugin, ...]:
        return tuple(link for link in self.plugins if link.plugin.kind is kind and link.plugin.stage == stage)

    def get_plugin(self, kind: PluginKind) -> ConfiguredPlugin:
        return self.filter_plugins(kind)[0]

    @property
    def min_group_size(self) -> int:
        return max(link.plugin.min_group_size for link in self.plugins)

    @property
    def allows_unscored(self) -> bool:
        """Return whether rollouts without a reward may be trained."""
        return self.get_plugin(PluginKind.ADVANTAGE).plugin.allows_unscored

    @property
    def state_tables(self) -> frozenset[str]:
        """Return the names of the state tables that the plug-ins use."""
        return frozenset[str]().union(*(link.plugin.state_tables for link in self.plugins))

    def needs_column(self, name: str) -> bool:
        return any(name in link.needs for link in self.plugins)

    @property
    def required_stats(self) -> frozenset[str]:
        """Return the names of the `TrainingBatch.rollout_stats` that the plug-ins need."""
        needs = frozenset[str]().union(*(link.needs for link in self.plugins))
        return frozenset(
            name.removeprefix(ROLLOUT_STATS_PREFIX) for name in needs if name.startswith(ROLLOUT_STATS_PREFIX)
        )


@dataclass(frozen=True, slots=True)
class RequiredColumns:
    """Names of the columns that have to be computed."""

    before_selection: frozenset[str]
    """Columns of all viewed rows, needed by `compute_advantages`."""
    after_selection: frozenset[str]
    """Columns of the trained rows, needed by `compute_token_weights`."""


def compute_required_columns(pipeline: Pipeline, mode: str = "bypass") -> RequiredColumns:
    """Return the columns that have to be computed for a pipeline.

    `mode` is as in `config.LearnerConfig`. With `bypass`, `old_logprobs` are the recorded logprobs, so
    they are not computed.
    """
    known_columns = RECORDED_COLUMNS | ({"old_logprobs"} if mode == "bypass" else frozenset[str]())
    early, late = (_columns_needed_by(pipeline, when) - known_columns for when in (True, False))
    return RequiredColumns(early, late - early)


def _columns_needed_by(pipeline: Pipeline, early: bool) -> frozenset[str]:
    links = [link for link in pipeline.plugins if (link.plugin.kind in PRE_SELECTION_KINDS) == early]
    needs = frozenset[str]().union(*(link.needs for link in links))
    return frozenset(name for name in needs if not name.startswith(ROLLOUT_STATS_PREFIX))


def build_pipeline(
    config: PipelineConfig,
    registry: PluginRegistry | None = None,
    *,
    computable: frozenset[str] = frozenset(COLUMNS),
    group_size: int | None = None,
) -> Pipeline:
    """Build a pipeline from its configuration, with the installed plug-ins unless `registry` is given.

    `computable` names the columns that can be computed. A `group_size` of `None` means that it is not
    known in advance. Raises InvalidPipelineError.
    """
    plugins = load_registry() if registry is None else registry
    pipeline = Pipeline(
        tuple(_configure_plugin(plugins, *plugin_config) for plugin_config in _iter_plugin_configs(config))
    )
    _check_plugin_counts(pipeline)
    _check_columns_computable(pipeline, computable)
    _check_unique_traits(pipeline)
    _check_conflicts(pipeline)
    _check_group_size(pipeline, group_size)
    _check_rejected_included(pipeline)
    return pipeline


def build_job_pipeline(config: TrainConfig, registry: PluginRegistry | None = None) -> Pipeline:
    """Build the pipeline of a job for Offing's own learner. Raises InvalidPipelineError."""
    pipeline = build_pipeline(
        config.pipeline, registry, computable=list_computable_columns(config), group_size=config.data.group_size
    )
    _check_correction_has_effect(pipeline, config.learner.mode)
    return pipeline


def list_computable_columns(config: TrainConfig) -> frozenset[str]:
    """Return the columns that a job can compute."""
    critic = config.learner.critic
    learned = frozenset({"old_logprobs", "start_logprobs", "ref_logprobs"}) | OF_REFERENCES
    return learned | (frozenset[str](critic.columns) if critic else frozenset[str]())


def _iter_plugin_configs(config: PipelineConfig) -> Iterator[tuple[str, PluginKind, PluginConfig]]:
    configs_by_field: Mapping[str, tuple[PluginKind, Sequence[PluginConfig]]] = {
        "view": (PluginKind.VIEW, config.view),
        "rewards": (PluginKind.REWARD, config.rewards),
        "selectors": (PluginKind.SELECTOR, config.selectors),
        "advantage": (PluginKind.ADVANTAGE, config.advantage),
        "advantage_modifiers": (PluginKind.ADVANTAGE_MODIFIER, config.advantage_modifiers),
        "token_weights": (PluginKind.TOKEN_WEIGHT, config.token_weights),
        "surrogate": (PluginKind.SURROGATE, config.surrogate),
        "regularizers": (PluginKind.REGULARIZER, config.regularizers),
    }
    for field, (seam, entries) in configs_by_field.items():
        for nth, entry in enumerate(entries):
            yield f"pipeline.{field}" + (f"[{nth}]" if len(entries) > 1 else ""), seam, entry


def _configure_plugin(
    registry: PluginRegistry, field: str, kind: PluginKind, plugin_config: PluginConfig
) -> ConfiguredPlugin:
    plugin = registry.get(plugin_key(kind, plugin_config.name))
    if plugin is None:
        raise InvalidPipelineError(
            field,
            f"there is no plug-in {plugin_config.name} for {kind}",
            _suggest_plugins(registry, kind, plugin_config),
        )
    coefficient = plugin_config.coefficient if isinstance(plugin_config, RegularizerConfig) else 1.0
    try:
        return ConfiguredPlugin(plugin, plugin.options.model_validate(plugin_config.options), coefficient)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([field, *(str(part) for part in first["loc"])])
        raise InvalidPipelineError(
            where, f"{plugin_config.name}: {first['msg'].lower()}", _describe_options(plugin)
        ) from error


def _suggest_plugins(registry: PluginRegistry, kind: PluginKind, plugin_config: PluginConfig) -> str:
    keys = [key.split(".", 1) for key in registry]
    elsewhere = [other for other, name in keys if name == plugin_config.name]
    names = ", ".join(sorted(name for at, name in keys if at == kind)) or "none"
    return f"It belongs under {elsewhere[0]}." if elsewhere else f"Use one of: {names}."


def _describe_options(plugin: Plugin) -> str:
    return f"Its options are: {', '.join(plugin.options.model_fields) or 'none'}."


def _check_plugin_counts(pipeline: Pipeline) -> None:
    for seam in sorted(SINGLE_KINDS):
        names = [link.plugin.name for link in pipeline.filter_plugins(seam)]
        if not names:
            raise InvalidPipelineError(f"pipeline.{seam}", "is missing", "Use exactly one plug-in.")
        if len(names) > 1:
            raise InvalidPipelineError(
                f"pipeline.{seam}", f"{_join_names(names)} cannot be combined", "Keep exactly one of them."
            )
    if not pipeline.filter_plugins(PluginKind.TOKEN_WEIGHT):
        raise InvalidPipelineError("pipeline.token_weights", "is missing", "Use at least one, such as token-mean.")


def _check_columns_computable(pipeline: Pipeline, computable: frozenset[str]) -> None:
    for link in pipeline.plugins:
        needs = {name for name in link.needs if not name.startswith(ROLLOUT_STATS_PREFIX)}
        for name in sorted(needs - RECORDED_COLUMNS - computable):
            raise InvalidPipelineError(
                _field_path(link),
                f"{link.plugin.name} needs {name}, which nothing in this configuration computes",
                _suggest_column_source(name),
            )


def _suggest_column_source(name: str) -> str:
    if name == "value_final":
        return 'The last observation before a limit is not stored. Set at_truncation to "last-value" or "off".'
    if name.startswith("value"):
        return f'Add it to learner.critic: columns = ["{name}"], or use another plug-in.'
    meaning = COLUMNS.get(name)
    return f"Use another plug-in. {name} is {meaning}." if meaning else "No column has this name. See COLUMNS."


def _check_unique_traits(pipeline: Pipeline) -> None:
    for one, other in combinations(pipeline.plugins, 2):
        for claim in sorted(one.plugin.traits & other.plugin.traits):
            names = _join_names([one.plugin.name, other.plugin.name])
            raise InvalidPipelineError(_field_path(other), f"{names} both have the trait {claim}", "Keep one of them.")


def _check_conflicts(pipeline: Pipeline) -> None:
    for one, other in combinations(pipeline.plugins, 2):
        names = _join_names([one.plugin.name, other.plugin.name])
        reason = one.plugin.conflicts.get(other.plugin.name) or other.plugin.conflicts.get(one.plugin.name)
        if reason:
            raise InvalidPipelineError(_field_path(other), f"{names} cannot be combined: {reason}", "Keep one of them.")


def _check_group_size(pipeline: Pipeline, size: int | None) -> None:
    for link in pipeline.plugins:
        min_group_size = link.plugin.min_group_size
        if size is not None and size < min_group_size:
            raise InvalidPipelineError(
                _field_path(link),
                f"{link.plugin.name} needs groups of at least {min_group_size} rollouts, but data.group_size is {size}",
                "Collect larger groups, or use another plug-in.",
            )


def _check_rejected_included(pipeline: Pipeline) -> None:
    """Raise InvalidPipelineError for a plug-in that the view's option `include_rejected` leaves without effect."""
    view = pipeline.get_plugin(PluginKind.VIEW)
    if getattr(view.options, "include_rejected", True):
        return
    for link in pipeline.plugins:
        if link.plugin.needs_rejected:
            raise InvalidPipelineError(
                _field_path(link),
                f"{link.plugin.name} has no effect, because {view.plugin.name} leaves out rejected completions",
                'Set "include_rejected = true" for the view, or remove the plug-in.',
            )


def _check_correction_has_effect(pipeline: Pipeline, mode: str) -> None:
    """Raise InvalidPipelineError for importance weights without effect.

    With `bypass`, the old logprobs are the recorded ones, so their ratio is 1 everywhere.
    """
    for link in pipeline.filter_plugins(PluginKind.TOKEN_WEIGHT):
        if mode == "bypass" and {"old_logprobs", "behavior_logprobs"} <= link.needs:
            raise InvalidPipelineError(
                _field_path(link),
                f"{link.plugin.name} has no effect in bypass mode, where the old logprobs are the recorded ones",
                'Set learner.mode to "decoupled", or remove the plug-in.',
            )


def _field_path(configured: ConfiguredPlugin) -> str:
    kind = configured.plugin.kind
    return f"pipeline.{kind if kind in SINGLE_KINDS else f'{kind}s'}"


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(names)
