"""What `offing evaluate` compares, from the options of the command line or from a TOML file."""

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from offing.cli.ask import check_roles_answered
from offing.cli.options import ComparisonOptions
from offing.cli.rollouts import merge_engine_configs, parse_scorer
from offing.core.errors import InvalidInput
from offing.core.judge_budget import JudgeBudget
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import scorer_pins
from offing.services.experiments import Configuration
from offing.services.graphs import get_graph
from offing.services.rollouts import ScorerSpec

LIMITS = ("graph", "max_turns", "max_tokens", "max_cost_usd", "max_seconds", "web", "code")
"""Words of `--config` that are not roles."""

DEFAULT_NAME = "default"
"""Name of the only configuration if none is given."""


class ConfigurationPlan(BaseModel, frozen=True, extra="forbid"):
    """One configuration. `None` means the value for all configurations."""

    graph: str | None = None
    engines: dict[str, str] = {}
    """Engine by role, or for `all` roles."""
    policies: dict[str, str] = {}
    """NAME@VERSION by role."""
    max_turns: int | None = Field(default=None, ge=0, le=2048)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost_usd: float | None = Field(default=None, gt=0)
    max_seconds: float | None = Field(default=None, gt=0)
    web: bool = False
    code: bool = False


class JudgeBudgetPlan(BaseModel, frozen=True, extra="forbid"):
    """What judges may use for each configuration. `None` means no limit."""

    max_calls: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0)

    def to_budget(self) -> JudgeBudget:
        usd = None if self.max_cost_usd is None else Decimal(str(self.max_cost_usd))
        return JudgeBudget(self.max_calls, usd)


class EvaluationPlan(BaseModel, frozen=True, extra="forbid"):
    """The content of the TOML file."""

    dataset: str
    name: str = ""
    max_questions: int | None = Field(default=None, gt=0)
    seed: int = Field(default=0, ge=0)
    judge: str | None = None
    judge_budget: JudgeBudgetPlan = JudgeBudgetPlan()
    scorers: dict[str, float | dict[str, Any]] = {}
    """Weight by scorer, or a table with `weight` and the options of the scorer."""
    graph: str = "agentflow"
    engines: dict[str, str] = {}
    max_turns: int = Field(default=12, ge=0, le=2048)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost_usd: float | None = Field(default=None, gt=0)
    max_seconds: float | None = Field(default=None, gt=0)
    configurations: dict[str, ConfigurationPlan] = {}


def read_plan(options: ComparisonOptions) -> EvaluationPlan:
    """Return the plan of the command line, or of the TOML file that it names. Raises InvalidInput."""
    if options.dataset.endswith(".toml"):
        return _read_file(Path(options.dataset), options)
    values = {
        "dataset": options.dataset,
        "name": options.name,
        "max_questions": options.max_questions,
        "seed": options.seed,
        "judge": options.judge,
        "judge_budget": {"max_calls": options.judge_max_calls, "max_cost_usd": options.judge_max_usd},
        "scorers": {one.name: {"weight": one.weight, **one.options} for one in map(parse_scorer, options.scorers)},
        "graph": options.graph,
        "engines": dict(_split_assignment(text, "--engine") for text in options.engines),
        "max_turns": options.max_turns,
        "max_tokens": options.max_tokens,
        "max_cost_usd": options.max_cost_usd,
        "max_seconds": options.max_seconds,
        "configurations": _parse_configurations(options.configurations),
    }
    return _validate(values, "")


def build_configurations(plan: EvaluationPlan, graphs: Mapping[str, Graph]) -> list[Configuration]:
    """Return the configurations of a plan. Raises InvalidInput for a graph, role or engine that does not exist."""
    configurations = plan.configurations or {DEFAULT_NAME: ConfigurationPlan()}
    return [_build_configuration(name, one, plan, graphs) for name, one in configurations.items()]


def build_scorers(plan: EvaluationPlan) -> list[ScorerSpec] | None:
    """Return the scorers of a plan. `None` means the default scorers."""
    return scorer_pins.build_scorers(plan.scorers)


def _build_configuration(
    name: str, one: ConfigurationPlan, plan: EvaluationPlan, graphs: Mapping[str, Graph]
) -> Configuration:
    graph = get_graph(graphs, one.graph or plan.graph)
    shared = {role: engine for role, engine in plan.engines.items() if role not in one.policies}
    texts = [f"{role}={engine}" for role, engine in (*shared.items(), *one.engines.items())]
    engines = merge_engine_configs(texts, [f"{role}={label}" for role, label in one.policies.items()], graph)
    check_roles_answered(graph, engines)
    usd = plan.max_cost_usd if one.max_cost_usd is None else one.max_cost_usd
    budget = Budget(
        plan.max_turns if one.max_turns is None else one.max_turns,
        plan.max_tokens if one.max_tokens is None else one.max_tokens,
        None if usd is None else Decimal(str(usd)),
        plan.max_seconds if one.max_seconds is None else one.max_seconds,
    )
    scope = {field: True for field in ("web", "code") if getattr(one, field)}
    return Configuration(name, graph.name, engines, budget, scope)


def _read_file(path: Path, options: ComparisonOptions) -> EvaluationPlan:
    unset = ComparisonOptions(options.dataset, again=options.again, paths=options.paths, as_json=options.as_json)
    if options != unset:
        problem = f"{path} already says what to compare"
        remedy = (
            "Change the file, or use a dataset in its place. Only --again, --path and --json are possible beside it."
        )
        raise InvalidInput("DATASET", problem, remedy)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput("DATASET", f"{path} cannot be read as TOML: {error}", "Use a valid TOML file.") from error
    plan = _validate(values, f"{path.name}: ")
    beside = path.parent / plan.dataset
    return plan.model_copy(update={"dataset": str(beside)}) if beside.exists() else plan


def _validate(values: Mapping[str, Any], location: str) -> EvaluationPlan:
    try:
        return EvaluationPlan.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = location + ".".join(map(str, first["loc"]))
        names = ", ".join(EvaluationPlan.model_fields)
        raise InvalidInput(field, first["msg"], f"The fields are {names}.") from None


def _parse_configurations(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, words = _split_assignment(text, "--config")
        if name in parsed:
            raise InvalidInput("--config", f"the name {name!r} is used twice", "Give each configuration its own name.")
        parsed[name] = _parse_words(words)
    return parsed


def _parse_words(text: str) -> dict[str, Any]:
    """Parse `graph=… role=engine … max_turns=…` into the fields of a configuration."""
    pairs = [_split_assignment(word, "--config") for word in shlex.split(text)]
    engines = {role: engine for role, engine in pairs if role not in LIMITS}
    return {name: value for name, value in pairs if name in LIMITS} | {"engines": engines}


def _split_assignment(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value.strip():
        remedy = 'For example, use --config small="graph=iterresearch all=litellm:openai/gpt-5-mini".'
        if option == "--engine":
            remedy = "For example, use planner=extractive."
        raise InvalidInput(option, f"{text!r} does not have the form NAME=VALUE", remedy)
    return name, value
