"""Configurations of LangGraph projects, in every form that is published."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import LangGraphConfig, ThreadTtlStrategy, compare_python
from offing.core.langgraph_config_parser import parse_langgraph_config

CONFIGS = Path(__file__).parent / "langgraph_configs"
MINIMAL = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}}


def read(name: str) -> LangGraphConfig:
    return parse_langgraph_config(orjson.loads((CONFIGS / f"{name}.json").read_bytes()))


def graphs_of(config: LangGraphConfig) -> dict[str, str]:
    return {graph.name: str(graph.reference) for graph in config.graphs}


def noticed_keys(config: LangGraphConfig) -> set[str]:
    return {notice.key for notice in config.notices}


@pytest.mark.parametrize(
    ("name", "graphs", "local", "packages", "noticed"),
    [
        ("prerelease", {"agent": "./agent.py:graph"}, (".", "./deps/one", "./deps/two"), (), set[str]()),
        (
            "requirements",
            {"agent": "./agent.py:graph", "writer": "./writer.py:graph"},
            (".",),
            ("langchain_openai", "scikit-learn"),
            set[str](),
        ),
        (
            "image_keys",
            {"agent": "./graphs/agent.py:graph"},
            ("./graphs",),
            ("langchain_openai",),
            {"pip_config_file", "keep_pkg_tools", "dockerfile_lines", "image_distro"},
        ),
        ("monorepo", {"agent": "./src/agent/graph.py:graph"}, (".", "../../libs/shared"), (), set[str]()),
        ("uv_source", {"agent": "./src/agent/graph.py:graph"}, (".",), (), set[str]()),
        ("nested_path", {"app": "tests/example/graph.py:app"}, ("tests/example",), (), set[str]()),
        (
            "factories",
            {"agent": "./graph/streaming.py:graph", "made": "./graph/factory.py:make_graph"},
            ("./graph",),
            (),
            set[str](),
        ),
        ("template", {"agent": "./src/agent/graph.py:graph"}, (".",), (), {"image_distro"}),
    ],
)
def test_a_published_form_is_read(
    name: str, graphs: dict[str, str], local: tuple[str, ...], packages: tuple[str, ...], noticed: set[str]
) -> None:
    config = read(name)
    assert graphs_of(config) == graphs
    assert config.local_dependencies == local
    assert config.package_dependencies == packages
    assert noticed_keys(config) == noticed


def test_a_graph_may_have_a_description_and_may_be_named_by_its_module() -> None:
    described, module = read("described").graphs
    assert (described.name, described.description, described.reference.is_file) == (
        "Deep Researcher",
        "Researches.",
        True,
    )
    assert (module.reference.location, module.reference.variable, module.reference.is_file) == (
        "researcher.graph",
        "graph",
        False,
    )


def test_every_other_key_is_used_or_named() -> None:
    config = read("everything")
    assert config.package_dependencies == ("langchain-openai>=1,<2", "git+https://git.example/org/repo.git")
    assert str(config.auth) == "./auth.py:auth"
    assert config.store_index is not None
    assert (config.store_index.dims, config.store_index.fields) == (1536, ("text",))
    assert config.store_ttl is not None
    assert (config.store_ttl.default_ttl, config.store_ttl.refresh_on_read) == (60, False)
    assert config.thread_ttl is not None
    assert (config.thread_ttl.default_ttl, config.thread_ttl.strategy) == (1440, ThreadTtlStrategy.KEEP_LATEST)
    assert str(config.http.app) == "./web.py:app"
    assert config.http.cors == {"allow_origins": ["https://chat.example"]}
    assert (config.http.disabled_routes, config.http.mount_prefix) == (frozenset({"store"}), "/agents")
    assert config.http.authenticates_app
    assert noticed_keys(config) == {
        "auth.disable_studio_auth",
        "auth.openapi",
        "checkpointer.path",
        "checkpointer.serde",
        "checkpointer.ttl.sweep_interval_minutes",
        "checkpointer.ttl.sweep_limit",
        "store.ttl.sweep_interval_minutes",
        "ui",
        "color",
    }


def test_a_graph_in_javascript_is_named_and_the_others_are_served() -> None:
    config = parse_langgraph_config({**MINIMAL, "graphs": {"agent": "./agent.py:graph", "chat": "./chat.ts:graph"}})
    assert graphs_of(config) == {"agent": "./agent.py:graph"}
    assert noticed_keys(config) == {"graphs.chat"}
    with pytest.raises(InvalidInput, match="all graphs are written in JavaScript"):
        read("javascript")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"graphs": {}}, "langgraph.json: graphs"),
        ({"graphs": {"agent": "./agent.py"}}, "graphs.agent"),
        ({"graphs": {"agent": {"description": "x"}}}, "graphs.agent"),
        ({"graphs": ["agent"]}, "graphs: is a list"),
        ({"dependencies": "."}, "dependencies: is a text"),
        ({"store": {"index": {"embed": "openai:x"}}}, "store.index.dims"),
        ({"store": {"ttl": {"default_ttl": True}}}, "store.ttl.default_ttl"),
        ({"store": {"ttl": {"default_ttl": 0}}}, "store.ttl.default_ttl"),
        ({"checkpointer": {"ttl": {"strategy": "burn"}}}, "checkpointer.ttl.strategy"),
        ({"auth": {}}, "auth.path"),
        ({"python_version": "2.7"}, "python_version"),
        ({"encryption": {"path": "./e.py:e"}}, "encryption"),
        ({"source": {"kind": "tar"}}, "source.kind"),
        ({"env": 3}, "env"),
    ],
)
def test_an_error_names_the_key(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_langgraph_config({**MINIMAL, **change})
    assert named in str(raised.value)


def test_no_error_and_no_text_of_the_configuration_shows_a_variable() -> None:
    config = parse_langgraph_config({**MINIMAL, "env": {"API_KEY": "sk-hidden"}})
    assert config.env == {"API_KEY": "sk-hidden"}
    assert "sk-hidden" not in repr(config)
    with pytest.raises(InvalidInput) as raised:
        parse_langgraph_config({**MINIMAL, "env": {"API_KEY": ["sk-hidden"]}})
    assert "API_KEY" in str(raised.value)
    assert "sk-hidden" not in str(raised.value)


def test_another_python_than_the_running_one_is_said() -> None:
    config = parse_langgraph_config({**MINIMAL, "python_version": "3.12"})
    assert compare_python(config, (3, 12, 4)) is None
    assert str(compare_python(config, (3, 11))) == "python_version: The project asks for 3.12; Offing runs 3.11."
