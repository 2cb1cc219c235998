"""Who answers, and in which form, is known before anything is started."""

from dataclasses import replace
from pathlib import Path

import pytest

from offing.cli.ask import build_report_style, check_roles_answered, resolve_budget
from offing.cli.options import AskOptions
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.report_style import ReportLength, ReportStyle
from offing.core.run import Budget, Depth
from offing.models.preset_table import BUDGETS, Preset
from offing.services.graphs import open_registry
from tests.graphs.langgraph_only import react


def test_a_graph_that_needs_a_model_is_not_started_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFING_DEFAULT_ENGINE", raising=False)
    with pytest.raises(InvalidInput, match="--engine agent=litellm"):
        check_roles_answered(react.graph, {})
    check_roles_answered(react.graph, {"agent": EngineConfig(engine="litellm", model="openai/gpt-5-mini")})
    check_roles_answered(open_registry()["agentflow"], {})


def test_the_engine_of_all_runs_is_one_that_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_DEFAULT_ENGINE", "litellm:openai/gpt-5-mini")
    check_roles_answered(react.graph, {})


def test_the_depth_of_a_run_is_that_of_the_option_or_else_of_the_preset() -> None:
    thorough = Preset("thorough", {}, BUDGETS["thorough"])
    assert resolve_budget(AskOptions("why"), None) == Budget()
    assert resolve_budget(AskOptions("why", depth="deep"), None) == Budget(40, depth=Depth.DEEP)
    assert resolve_budget(AskOptions("why", depth="deep", max_turns=512), None) == Budget(512, depth=Depth.DEEP)
    assert resolve_budget(AskOptions("why"), thorough).depth is Depth.DEEP
    assert resolve_budget(AskOptions("why", depth="quick"), thorough).depth is Depth.QUICK
    assert resolve_budget(AskOptions("why", depth="standard"), thorough) == replace(
        resolve_budget(AskOptions("why"), thorough), max_turns=12, depth=Depth.STANDARD
    )
    assert resolve_budget(AskOptions("why"), Preset("mine", {}, {"depth": "deep"})) == Budget(40, depth=Depth.DEEP)


def test_the_options_of_the_report_are_its_style(tmp_path: Path) -> None:
    template = tmp_path / "template.md"
    template.write_text("## Costs\n## Risks\n", encoding="utf-8")
    assert build_report_style(AskOptions("Why?")) is None
    style = build_report_style(AskOptions("Why?", length="long", language="zh", template=template))
    assert style == ReportStyle(length=ReportLength.LONG, language="zh", template="## Costs\n## Risks")


def test_a_wrong_option_of_the_report_is_named_with_its_remedy(tmp_path: Path) -> None:
    long, empty, binary = tmp_path / "long", tmp_path / "empty", tmp_path / "binary"
    long.write_text("x" * 5000)
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"--language.*a tag such as zh"):
        build_report_style(AskOptions("Why?", language="Chinese language"))
    for file, words in ((long, "4,000 characters"), (empty, "is empty"), (binary, "UTF-8"), (tmp_path / "no", "UTF-8")):
        with pytest.raises(InvalidInput, match=f"--template.*{words}"):
            build_report_style(AskOptions("Why?", template=file))
