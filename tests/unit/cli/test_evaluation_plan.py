"""What `offing evaluate` reads from its options and from a TOML file."""

from decimal import Decimal
from pathlib import Path

import pytest

from offing.cli.commands import app
from offing.cli.evaluation_plan import build_configurations, build_scorers, read_plan
from offing.cli.options import ComparisonOptions
from offing.core.errors import InvalidInput
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.experiments import Configuration
from offing.services.graphs import open_registry
from offing.services.rollouts import ScorerSpec

FILE = """
dataset = "towers"
max_questions = 200
seed = 7
judge = "litellm:openai/gpt-5-mini"
judge_budget = { max_calls = 500, max_cost_usd = 2 }
engines = { all = "rules:world" }

[scorers]
exact_match = 1
numeric = { weight = 0.5, relative = 0.01 }
token_f1 = {}

[configurations.old]
policies = { planner = "small@3" }

[configurations.new]
graph = "iterresearch"
engines = { researcher = "rules:oracle" }
max_turns = 4
max_cost_usd = 0.25
web = true
"""


def configurations(options: ComparisonOptions) -> list[Configuration]:
    return build_configurations(read_plan(options), open_registry())


def test_configurations_are_named_on_the_command_line_and_share_what_they_do_not_replace() -> None:
    careful, quick = configurations(
        ComparisonOptions(
            "t.jsonl",
            engines=("all=rules:world",),
            configurations=("careful=planner=rules:oracle", "quick=graph=iterresearch max_turns=3 web=true"),
        )
    )
    assert (careful.name, careful.graph, careful.budget.max_turns, dict(careful.scope)) == (
        "careful", "agentflow", 12, {}
    )  # fmt: skip
    assert careful.engines["planner"] == EngineConfig(engine="rules", model="oracle")
    assert careful.engines["verifier"] == EngineConfig(engine="rules", model="world")
    assert (quick.graph, quick.budget.max_turns, dict(quick.scope)) == ("iterresearch", 3, {"web": True})


def test_without_a_configuration_there_is_one() -> None:
    (one,) = configurations(ComparisonOptions("t.jsonl", engines=("planner=rules:oracle",)))
    assert (one.name, one.engines["planner"].model) == ("default", "oracle")


def test_every_option_is_read_and_a_configuration_replaces_the_limits_that_it_names() -> None:
    options = ComparisonOptions(
        "t.jsonl", max_questions=5, seed=7, name="night", judge="litellm:openai/gpt-5-mini",
        judge_max_calls=40, judge_max_usd=0.75, scorers=("numeric=0.5",), graph="iterresearch",
        engines=("all=extractive",),
        max_turns=3, max_tokens=1000, max_cost_usd=0.5, max_seconds=60.0,
        configurations=("own=max_turns=0 max_tokens=5 max_cost_usd=0.25 max_seconds=9 code=true", "shared=web=true"),
    )  # fmt: skip
    plan = read_plan(options)
    own, shared = configurations(options)
    assert (plan.dataset, plan.max_questions, plan.seed, plan.name) == ("t.jsonl", 5, 7, "night")
    assert plan.judge == "litellm:openai/gpt-5-mini"
    assert plan.judge_budget.to_budget() == JudgeBudget(40, Decimal("0.75"))
    assert build_scorers(plan) == [ScorerSpec("numeric", 0.5)]
    assert (own.graph, own.budget, dict(own.scope)) == (
        "iterresearch", Budget(0, 5, Decimal("0.25"), 9.0), {"code": True}
    )  # fmt: skip
    assert (shared.graph, shared.budget) == ("iterresearch", Budget(3, 1000, Decimal("0.5"), 60.0))


def test_without_a_judge_budget_there_is_no_limit() -> None:
    assert read_plan(ComparisonOptions("t.jsonl")).judge_budget.to_budget() == NO_JUDGE_LIMIT


def test_without_a_scorer_the_dataset_decides() -> None:
    assert build_scorers(read_plan(ComparisonOptions("t.jsonl"))) is None


def test_a_policy_of_a_file_replaces_the_engine_of_its_role_and_an_environment_is_no_path(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text(
        'dataset = "world:train-1@50"\nengines = { all = "rules:world", planner = "rules:oracle" }\n'
        '[configurations.trained]\npolicies = { planner = "small@3" }\n[configurations.oracle]\n'
    )
    options = ComparisonOptions(str(file))
    assert read_plan(options).dataset == "world:train-1@50"
    assert [(one.name, one.engines["planner"].engine) for one in configurations(options)] == [
        ("trained", "policy"),
        ("oracle", "rules"),
    ]


def test_a_file_says_the_same_in_tables(tmp_path: Path) -> None:
    (tmp_path / "towers").mkdir()
    (tmp_path / "evaluation.toml").write_text(FILE)
    options = ComparisonOptions(str(tmp_path / "evaluation.toml"))
    plan = read_plan(options)
    old, new = configurations(options)
    assert (plan.dataset, plan.max_questions, plan.seed) == (str(tmp_path / "towers"), 200, 7)
    assert plan.judge_budget.to_budget() == JudgeBudget(500, Decimal("2.0"))
    assert build_scorers(plan) == [
        ScorerSpec("exact_match"),
        ScorerSpec("numeric", 0.5, {"relative": 0.01}),
        ScorerSpec("token_f1"),
    ]
    assert old.engines["planner"] == EngineConfig(engine="policy", model="small@3")
    assert (new.graph, new.budget.max_turns, new.budget.max_cost_usd) == ("iterresearch", 4, Decimal("0.25"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (ComparisonOptions("t", configurations=("alone",)), "--config: 'alone' does not have the form NAME=VALUE"),
        (ComparisonOptions("t", configurations=("a=graph",)), "--config: 'graph' does not have the form NAME=VALUE"),
        (ComparisonOptions("t", configurations=("a=web=true", "a=web=true")), "the name 'a' is used twice"),
        (ComparisonOptions("t", configurations=("a=max_turns=many",)), r"configurations\.a\.max_turns"),
        (ComparisonOptions("t", configurations=("a=captain=extractive",)), r"engines\.captain"),
        (ComparisonOptions("t", configurations=("a=graph=nothing",)), "There is no graph|no graph 'nothing'"),
        (ComparisonOptions("t", max_questions=0), "max_questions"),
        (ComparisonOptions("t", judge_max_calls=-1), r"judge_budget\.max_calls"),
    ],
)
def test_a_mistake_names_its_field(options: ComparisonOptions, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        configurations(options)


def test_a_file_rejects_unknown_fields_and_options_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text('dataset = "x"\nquestions = 3\n')
    with pytest.raises(InvalidInput, match=r"evaluation\.toml: questions"):
        read_plan(ComparisonOptions(str(file)))
    for beside in (
        ComparisonOptions(str(file), configurations=("a=web=true",)),
        ComparisonOptions(str(file), scorers=("exact_match",)),
        ComparisonOptions(str(file), engines=("all=extractive",)),
        ComparisonOptions(str(file), judge="extractive"),
        ComparisonOptions(str(file), judge_max_usd=1.0),
        ComparisonOptions(str(file), max_questions=3),
        ComparisonOptions(str(file), seed=1),
        ComparisonOptions(str(file), max_turns=3),
    ):
        with pytest.raises(InvalidInput, match="already says what to compare"):
            read_plan(beside)


def test_a_dataset_and_a_verb_are_told_apart() -> None:
    for words, name in (
        (["evaluate", "tasks.jsonl", "--config", "a=web=true"], "evaluate"),
        (["evaluate", "list"], "list_experiments"),
        (["evaluate", "export", "9f04c2", "--format", "csv"], "export"),
    ):
        command, _, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        assert command.__name__ == name
