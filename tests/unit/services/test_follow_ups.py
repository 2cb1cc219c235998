"""What a follow-up keeps of the run before it."""

import pytest

from offing.core.model import EngineConfig
from offing.services.follow_ups import keep_engines, merge_scopes
from offing.services.graphs import open_registry

LAST = {"collections": ["papers"], "sources": [], "web": True, "code": True, "mcp": ["tickets"], "environment": "world"}


@pytest.mark.parametrize(
    ("scope", "named", "merged"),
    [
        ({}, frozenset[str](), LAST),
        ({"collections": [], "sources": []}, frozenset[str](), LAST),
        ({"collections": ["notes"]}, frozenset[str](), {**LAST, "collections": ["notes"], "sources": None}),
        ({"mcp": ["mail"]}, frozenset[str](), {**LAST, "mcp": ["mail"]}),
        ({"collections": []}, frozenset({"mcp"}), {**LAST, "mcp": None}),
        ({}, frozenset({"web", "code"}), {**LAST, "web": None, "code": None}),
    ],
)
def test_entries_of_a_scope_are_kept_unless_the_request_names_them(
    scope: dict[str, object], named: frozenset[str], merged: dict[str, object]
) -> None:
    assert merge_scopes(LAST, scope, named) == {key: value for key, value in merged.items() if value is not None}


def test_engines_are_kept_for_roles_of_the_graph_without_formats_that_it_does_not_have() -> None:
    graph = open_registry()["agentflow"]
    last = {
        "planner": EngineConfig(engine="litellm", model="openai/m", prompt_format="compact"),
        "generator": EngineConfig(engine="litellm", model="openai/m", prompt_format="of-another-graph"),
        "agent": EngineConfig(engine="litellm", model="openai/m"),
    }
    engines = keep_engines(graph, last)
    assert set(engines) == {"planner", "generator"}
    assert engines["planner"] == last["planner"]
    assert engines["generator"].prompt_format == ""
