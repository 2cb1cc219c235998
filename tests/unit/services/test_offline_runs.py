"""What an offline run may not call: engines, fallbacks and tools that are elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.tool import ToolOutput
from offing.models.stored_provider import StoredProvider
from offing.sdk.tool import tool
from offing.services.graphs import GraphRegistry
from offing.services.offline_runs import check_offline, find_offline_problem
from offing.tools.tool import ToolArgs
from tests.api.graphs import quiet

OFFLINE = {"offline": True}
HERE = EngineConfig(engine="litellm", model="mine/x")
AWAY = EngineConfig(engine="litellm", model="openai/gpt-5-mini")
STORED = {"mine": StoredProvider("mine", "hosted_vllm", "http://127.0.0.1:8000/v1", "k3y-of-the-test-0123456789")}


@pytest.fixture(autouse=True)
def _operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_ALLOWED_ENGINE_URLS", "http://127.0.0.1:8000/v1")


def problem(engine: EngineConfig, scope: dict[str, Any] = OFFLINE) -> str:
    return find_offline_problem(quiet, scope, {"speaker": engine}, STORED)


def test_engines_on_this_machine_are_allowed_and_others_are_named() -> None:
    assert problem(EngineConfig()) == ""
    assert problem(HERE) == ""
    assert "openai/gpt-5-mini" in problem(AWAY)
    assert "openai/gpt-5-mini" in problem(HERE.model_copy(update={"fallbacks": (AWAY,)}))
    assert problem(AWAY, {}) == ""
    assert "third_party" in problem(EngineConfig(engine="third_party"))


class Word(ToolArgs, frozen=True):
    word: str


@tool(sends_data_out=True)
async def look_up(args: Word) -> ToolOutput:
    """Look a word up."""
    return ToolOutput(content={}, title=args.word)


def test_a_tool_that_sends_data_is_not_offline() -> None:
    sending = GraphRegistry([replace(quiet, tools=(look_up,))])["quiet"]
    assert "look_up" in find_offline_problem(sending, OFFLINE, {}, {})


def test_the_models_of_the_library_count_too() -> None:
    check_offline(quiet, {}, {}, {}, "openai/e")
    with pytest.raises(InvalidInput, match="openai/e"):
        check_offline(quiet, OFFLINE, {}, {}, "openai/e")
