"""Who answers is known before anything is started."""

import pytest

from offing.cli.ask import check_roles_answered
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
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
