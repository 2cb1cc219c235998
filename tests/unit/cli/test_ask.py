"""Who answers is known before anything is started."""

import pytest

from offing.cli.ask import check_answered
from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.services.graphs import installed
from tests.graphs.plain import react


def test_a_graph_that_needs_a_model_is_not_started_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFING_ENGINE", raising=False)
    with pytest.raises(InvalidInput, match="--engine agent=litellm"):
        check_answered(react.graph, {})
    check_answered(react.graph, {"agent": EngineChoice(engine="litellm", model="openai/gpt-5-mini")})
    check_answered(installed()["agentflow"], {})


def test_the_engine_of_all_runs_is_one_that_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_ENGINE", "litellm:openai/gpt-5-mini")
    check_answered(react.graph, {})
