"""A third party's package registers one value of each kind, and each is used as one of Offing's own is."""

import sys
from pathlib import Path

import pytest
from cyclopts import App

from offing import registry
from offing.cli.commands import add_registered_commands
from offing.cli.trajectories import import_rows
from offing.core.errors import InvalidInput
from offing.core.run import Budget
from offing.core.trajectory import Outcome
from offing.models.engine import create_engine
from offing.models.engine_discovery import list_third_party_engines, parse_engine_config
from offing.scorers import SCORERS, ScorerResult, ScoringInput
from offing.sdk import StateView, StepKind, ToolStatus
from offing.services.graphs import GraphRegistry, open_registry
from offing.services.tasks import sample_tasks
from offing.services.tool_backends import build_search_providers
from offing.settings import Settings
from offing.testing import simulate_run
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from offing.tools.environment import TaskSample, find_spec
from offing_trainer.config import parse_config
from offing_trainer.pipeline import build_job_pipeline
from offing_trainer.plugin import PluginKind
from tests.installed import install
from tests.models.builders import Ledger, Verdict, answered, request
from tests.unit.exports.builders import a_row, saved

ACME = '''
from collections.abc import Mapping
from typing import Any
from offing.cli.command import Command
from offing.core.model import EngineResponse
from offing.core.tool_policy import ToolRule
from offing.exports.format import Format, RecordUnit
from offing.exports.json_lines import JsonLinesSink
from offing.scorers import ScorerResult
from offing.sdk import (
    DraftSection, DraftSentence, Graph, ReportDraft, RunContext, StateView, StopReason, ToolArgs, ToolCall, ToolOutput,
    ToolSpec, tool
)
from offing.tools.environment import Environment, RoleExtension, TaskSample
from offing.tools.platform_tool import PlatformTool
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.shared.schemas import Plan
from offing.web.provider import SearchEngine, SearchRequest, build_hit
from offing_trainer.plugin import Plugin, PluginKind


class Words(ToolArgs, frozen=True):
    words: str


@tool()
async def shout(args: Words) -> ToolOutput:
    """Say words loudly."""
    return ToolOutput({"said": args.words.upper()}, "shouted")


class Whisper:
    spec = ToolSpec("whisper", "Say words quietly.", Words, "whisper")

    async def __call__(self, args: Words, scope: Any) -> ToolOutput:
        return ToolOutput({"said": args.words.lower()}, "whispered")


WHISPER = PlatformTool(Whisper(), ToolRule(tool="whisper", allow_other_args=True, max_calls=3))


async def speak(state: Any, runtime: Any) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    loud = await ctx.call_tool(ToolCall("shout", {"words": ctx.run.question}), turn=1)
    await ctx.call_tool(ToolCall("whisper", {"words": "Hush"}), turn=1)
    sentence = DraftSentence(text=str(loud.content["said"]))
    section = DraftSection(heading="", sentences=(sentence,))
    await ctx.submit_report(ReportDraft(title="Said", sections=(section,)), StopReason.ANSWERED)
    return {"turn": 1}


def build() -> Any:
    from langgraph.graph import END, START, StateGraph
    graph = StateGraph(dict, context_schema=RunContext)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", END)
    return graph


GRAPH = Graph("acme", "Acme", "", "1", build, lambda run: {"turn": 0}, (), tools=("shout",),
              state_view=StateView.CONTEXT)


class Echo:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self.voice = variables["ACME_VOICE"]

    async def answer(self, request: Any) -> EngineResponse:
        return EngineResponse(output=request.role.output(analysis=self.voice, stop=True))


class Length:
    name, version, needs_engine, reads_report, reads_tool_results = "acme_length", "1", False, False, False

    def find_missing(self, reference: Any) -> str:
        return ""

    def check_options(self, options: Any) -> None:
        pass

    async def score(self, scoring_input: Any, options: Any, meter: Any) -> ScorerResult:
        return ScorerResult(float(len(scoring_input.answer)))


LENGTH = Length()


class Search:
    name = "acme"

    def __init__(self, key: str) -> None:
        self.key = key

    def build_request(self, query: str, limit: int) -> SearchRequest:
        return SearchRequest("https://acme.example/find", {"q": query}, {"Key": self.key})

    def parse_response(self, body: bytes) -> list[Any]:
        return [build_hit("https://acme.example/1", body.decode())]


SEARCH = SearchEngine("ACME_KEY", Search)
COUNTS = Format("acme_counts", RecordUnit.ROW, "tokens of each row",
                lambda file, options: JsonLinesSink(file, lambda row: [{"tokens": len(row)}]))
class Peek:
    spec = ToolSpec("peek", "Look at the world.", Words, "peek")

    async def __call__(self, args: Words, scope: Any) -> ToolOutput:
        return ToolOutput({"seen": scope.environment}, "peeked")


def generate_tasks(sample: TaskSample) -> Any:
    for n in range(sample.count):
        scope = {"environment": sample.spec}
        yield {"name": f"acme/{n}", "question": f"What is {n}?", "answers": [str(n)], "scope": scope}


def guess(inputs: PlannerInput, context: Any) -> Plan:
    return Plan(sub_goal="Guess", tool="peek", context="", justification="")


ACME = Environment(
    "acme",
    (PlatformTool(Peek(), ToolRule(tool="peek", allow_other_args=True, max_calls=5)),),
    generate_tasks,
    (RoleExtension(PlannerInput, {"guess": guess}),),
    "acme 1",
    ("yes", "no"),
)
COMMAND = Command("acme_all:say", "Says hello.")


def say(name: str) -> int:
    """Say hello."""
    print(f"Hello {name}")
    return 0


WEIGHT = Plugin("acme", PluginKind.TOKEN_WEIGHT, "Acme", lambda options, given: 1)
'''

ENTRY_POINTS = {
    "offing.graphs": {"acme": "acme_all:GRAPH"},
    "offing.tools": {"shout": "acme_all:shout", "whisper": "acme_all:WHISPER"},
    "offing.engines": {"acme_echo": "acme_all:Echo"},
    "offing.scorers": {"acme_length": "acme_all:LENGTH"},
    "offing.search_engines": {"acme": "acme_all:SEARCH"},
    "offing.export_formats": {"acme_counts": "acme_all:COUNTS"},
    "offing.environments": {"acme": "acme_all:ACME"},
    "offing.commands": {"acme": "acme_all:COMMAND"},
    "offing.training": {"token_weight.acme": "acme_all:WEIGHT"},
}


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "acme", ENTRY_POINTS, {"acme_all": ACME})
    monkeypatch.setattr(registry, "_folders", {})


def uninstall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "site of acme" not in entry])


async def test_a_graph_runs_with_a_custom_tool_and_a_tool_of_the_platform() -> None:
    graphs = open_registry.__wrapped__()
    run = await simulate_run(graphs["acme"], "who is there?")
    assert run.report is not None
    assert run.report.sections[0].sentences[0].text == "WHO IS THERE?"
    assert [(one.tool, one.status) for one in run.tool_results] == [
        ("shout", ToolStatus.OK),
        ("whisper", ToolStatus.OK),
    ]
    assert graphs["acme"].state_view is StateView.CONTEXT


def test_a_tool_of_the_platform_is_listed_last_and_its_rule_is_part_of_the_default_policy() -> None:
    names = [tool.spec.name for tool in create_tools()]
    assert names == ["search_library", "read_source", "calculate", "whisper"]
    assert {rule.tool: rule.max_calls for rule in default_tool_policy().rules}["whisper"] == 3
    assert "shout" not in names


async def test_an_engine_answers_with_what_its_own_variable_says() -> None:
    config = parse_engine_config("acme_echo", "--engine")
    engine = create_engine(config, {"ACME_VOICE": "loud"})
    answer = await answered(engine, request(config))  # pyright: ignore[reportArgumentType]
    assert answer.output == Verdict(analysis="loud", stop=True)
    (listed,) = list_third_party_engines()
    assert (listed.name, listed.available, listed.note) == ("acme_echo", True, "Registered by acme 1.0.")


async def test_a_scorer_scores() -> None:
    scorer = SCORERS.get_named("acme_length", "scorers")
    result = await scorer.score(ScoringInput("?", Outcome.ANSWERED, "four", None, None), {}, Ledger())
    assert result == ScorerResult(4.0)


def test_a_search_engine_is_made_from_its_own_variable() -> None:
    (result,) = build_search_providers(Settings(search_engines="acme"), {"ACME_KEY": "k"})
    assert result.build_request("tides", 3).headers == {"Key": "k"}
    assert [one.name for one in build_search_providers(Settings(search_engines=""), {"ACME_KEY": "k"})] == ["acme"]
    with pytest.raises(InvalidInput, match="ACME_KEY: is not set, but OFFING_SEARCH_ENGINES contains acme"):
        build_search_providers(Settings(search_engines="acme"), {})


def test_rows_are_written_in_an_export_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = a_row()
    import_rows(saved(tmp_path, "rows", [row]), format="rows", to_format="acme_counts", output=tmp_path / "x")
    assert (tmp_path / "x").read_text() == f'{{"tokens":{len(row)}}}\n'


def test_an_environment_has_its_tools_rules_and_tasks() -> None:
    assert [tool.spec.name for tool in create_tools("acme:one")] == ["peek"]
    assert {rule.tool: rule.max_calls for rule in default_tool_policy().rules}["peek"] == 5
    (first, second) = sample_tasks(TaskSample("acme:one", 2))
    assert (first.question, second.scope_of_run()) == ("What is 0?", {"environment": "acme:one"})
    with pytest.raises(InvalidInput, match=r"no environment 'nowhere'\. Use one of: acme, world"):
        create_tools("nowhere:one")
    specs = [find_spec(text) for text in ("acme:one", "world:train-1@50", "nowhere:one", "tasks.json")]
    assert specs == ["acme:one", "train-1@50", None, None]


async def test_an_environment_answers_the_roles_that_it_extends(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = open_registry.__wrapped__()["agentflow"]
    planner = next(role for role in graph.roles if role.name == "planner")
    assert set(planner.rules) == {"guess", "oracle", "random", "random-words"}
    run = await simulate_run(graph, "who?", rules={"planner": "guess"}, budget=Budget(max_turns=1))
    assert [step.title for step in run.list_steps(StepKind.PLAN)] == ["Guess"]
    uninstall(monkeypatch)
    assert open_registry.__wrapped__()["agentflow"].version != graph.version, "what extends a graph is in its version"


def test_a_command_is_added_and_called(capsys: pytest.CaptureFixture[str]) -> None:
    app = App(name="offing")
    add_registered_commands(app)
    app(["acme", "Ada"], result_action="return_value")
    assert capsys.readouterr().out == "Hello Ada\n"


def test_a_command_that_cannot_be_used_leaves_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    app = App(name="offing")
    app.command(print, name="acme")
    add_registered_commands(app)
    assert "world" in app
    assert "the command acme cannot be used" in capsys.readouterr().err


def test_a_training_job_names_a_plugin() -> None:
    tables = {"policy": "planner@1", "algorithm": "grpo", "pipeline": {"token_weights": {"name": "acme"}}}
    assert build_job_pipeline(parse_config(tables)).get_plugin(PluginKind.TOKEN_WEIGHT).plugin.source == "Acme"


def test_a_folder_registers_the_same_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall(monkeypatch)
    assert "acme_length" not in SCORERS
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "acme_all.py").write_text(ACME)
    points = {group: named for group, named in ENTRY_POINTS.items() if group != "offing.tools"}
    tables = [
        f'[project.entry-points."{group}"]\n' + "".join(f'"{name}" = "{target}"\n' for name, target in named.items())
        for group, named in (points | {"offing.tools": {"shout": "acme_all:shout"}}).items()
    ]
    (folder / "pyproject.toml").write_text("\n".join(tables))
    graphs = GraphRegistry(paths=str(folder), data_dir=tmp_path / "home")
    assert (list(graphs), graphs.problem) == (["acme"], "")
    assert SCORERS["acme_length"].version == "1"
    assert SCORERS.get_owner("acme_length") == f"the folder {folder}"
    tables = {"policy": "planner@1", "algorithm": "grpo", "pipeline": {"token_weights": {"name": "acme"}}}
    assert build_job_pipeline(parse_config(tables)).get_plugin(PluginKind.TOKEN_WEIGHT).plugin.source == "Acme"


def test_a_folder_s_value_of_the_wrong_type_is_told_with_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine_it.py").write_text("SCORER = 1\n")
    (folder / "pyproject.toml").write_text('[project.entry-points."offing.scorers"]\nmine = "mine_it:SCORER"\n')
    graphs = GraphRegistry(paths=str(folder), data_dir=tmp_path / "home")
    assert f"'mine' of the folder {folder} (mine_it:SCORER) is a value of type int, not a scorer" in graphs.problem
