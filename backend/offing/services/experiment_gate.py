"""What an experiment says about a candidate: the results of its configurations that pin the candidate and the active
version, for the promotion gate.
"""

from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.services.experiment_summary import find_value, list_metrics
from offing.services.experiments import Experiment, ExperimentResults, read_complete_experiment, read_results
from offing.services.promotion_gate import EvaluationResult
from offing.storage.experiments import ConfigurationRow
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Connection

REMEDY = "Run `offing evaluate` with two configurations that differ only in the version."


async def load_gate_results(
    connection: Connection,
    experiment_id: UUID,
    candidate: PolicyVersionRow,
    active: PolicyVersionRow,
    metric: str | None,
) -> tuple[list[EvaluationResult], list[EvaluationResult], str]:
    """Return the results of candidate and active version, and the name of the metric.

    `metric` of `None` means the only scorer with a weight, or the weighted mean of all. Raises NotFound, Conflict if
    the experiment is not complete, and InvalidInput if it did not compare exactly these versions or lacks the metric.
    """
    experiment = await read_complete_experiment(connection, experiment_id)
    ours, theirs = _find_configuration(experiment, candidate), _find_configuration(experiment, active)
    _check_comparable(ours, theirs)
    stored, chosen = await read_results(connection, experiment), _choose_metric(experiment, metric)
    return _list_values(stored, ours, chosen), _list_values(stored, theirs, chosen), chosen


def _find_configuration(experiment: Experiment, version: PolicyVersionRow) -> ConfigurationRow:
    """Return the only configuration that pins a version."""
    id = str(version.id)
    matches = [one for one in experiment.configurations if id in one.policy_version_ids.values()]
    if len(matches) != 1:
        problem = f"{len(matches)} configurations of the experiment use {version.label}, and one must"
        raise InvalidInput("experiment", problem, REMEDY)
    return matches[0]


def _check_comparable(ours: ConfigurationRow, theirs: ConfigurationRow) -> None:
    """Check that the configurations differ only in the version."""
    if ours.number == theirs.number:
        raise InvalidInput("experiment", f"{ours.name} uses both versions", REMEDY)
    for field in ("graph", "graph_version", "budget", "scope"):
        if getattr(ours, field) != getattr(theirs, field):
            problem = f"{ours.name} and {theirs.name} also differ in their {field.replace('_', ' ')}"
            raise InvalidInput("experiment", problem, REMEDY)
    for role in sorted(ours.engines.keys() | theirs.engines.keys()):
        if _without_version(ours.engines.get(role)) != _without_version(theirs.engines.get(role)):
            problem = f"{ours.name} and {theirs.name} also differ in the engine of {role}"
            raise InvalidInput("experiment", problem, REMEDY)


def _without_version(engine: dict[str, Any] | None) -> EngineConfig | None:
    """Return an engine config without the numbers of its versions."""
    if engine is None:
        return None
    choice = EngineConfig.model_validate(engine)
    model = choice.model.partition("@")[0] if choice.engine == "policy" else choice.model
    return choice.model_copy(update={"model": model, "prompt_library": choice.prompt_library.partition("@")[0]})


def _choose_metric(experiment: Experiment, metric: str | None) -> str:
    weighted = [name for name, weight in experiment.weights.items() if weight]
    available = list_metrics(experiment.weights)
    chosen = metric or (weighted[0] if len(weighted) == 1 else available[-1] if weighted else "")
    if chosen not in available:
        problem = f"the experiment has no metric {chosen!r}" if chosen else "no scorer of the experiment has a weight"
        raise InvalidInput("metric", problem, f"Use one of: {', '.join(available)}.")
    return chosen


def _list_values(stored: ExperimentResults, one: ConfigurationRow, metric: str) -> list[EvaluationResult]:
    weights = stored.experiment.weights
    return [
        EvaluationResult(
            row.task_id,
            0,
            find_value(row, metric, weights),
            row.outcome,
            row.turns,
            row.tokens,
            {"cost_usd": row.cost_usd, "seconds": row.seconds, **row.scores},
        )
        for row in stored.results
        if row.number == one.number and _applies(row.scores.keys(), metric, weights)
    ]


def _applies(scorers: Any, metric: str, weights: dict[str, float]) -> bool:
    """Return whether a task can be scored with the metric. Tasks of failed runs are kept, and excluded as pairs."""
    return not scorers or metric in scorers or metric not in weights
