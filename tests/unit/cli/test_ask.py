"""Who answers is known before anything is started."""

import pytest

from offing.cli.ask import check_roles_answered, resolve_budget
from offing.cli.options import AskOptions
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
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
