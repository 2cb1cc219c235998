"""Optional roles: a run asks them only if its configuration names an engine for them."""

from dataclasses import replace

import pytest

from offing.cli.ask import resolve_engine_configs
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.services.engine_configs import select_engines
from offing_graphs.agentflow import graph as agentflow

MODEL = EngineConfig(engine="litellm", model="openai/gpt-5-mini")


def test_the_default_engine_answers_no_optional_role() -> None:
    assert "checker" not in select_engines(agentflow, {}, MODEL)
    assert select_engines(agentflow, {"checker": MODEL}, EngineConfig())["checker"].prompt_format == "text"


def test_all_does_not_stand_for_optional_roles() -> None:
    everyone = ("all=litellm:openai/gpt-5-mini",)
    assert "checker" not in resolve_engine_configs(everyone, agentflow)
    assert "checker" in resolve_engine_configs((*everyone, "checker=litellm:openai/gpt-5-mini"), agentflow)


def test_an_unknown_role_is_rejected_with_the_optional_roles_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="checker, executor"):
        select_engines(agentflow, {"chequer": MODEL}, MODEL)
    with pytest.raises(InvalidInput):
        select_engines(replace(agentflow, optional_roles=()), {"checker": MODEL}, MODEL)
