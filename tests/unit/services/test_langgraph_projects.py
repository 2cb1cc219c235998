"""Projects with a `langgraph.json`: their graphs are found, pinned, loaded anew, and named in errors."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from langgraph.store.memory import InMemoryStore

from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.sdk.langgraph_adapter import GraphOpening
from offing.services.graph_folders import load_project
from offing.services.graphs import find_graph_version, get_graph
from offing.services.langgraph_auth import ProjectUser
from offing.testing import simulate_run
from tests.langgraph_project import copy_project, edit
from tests.unit.services.test_graph_folders import load_registry

GRAPH = """
from typing import Any
from typing_extensions import TypedDict
from langgraph.graph import StateGraph

class State(TypedDict):
    topic: str
    words: str

def write(state: State):
    return {"words": "about " + state["topic"]}

builder = StateGraph(State).add_node(write).add_edge("__start__", "write")
"""


def configured(folder: Path, **keys: Any) -> Path:
    """A folder with a configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "langgraph.json").write_bytes(orjson.dumps({"dependencies": ["."], **keys}))
    return folder


def with_graph(folder: Path, reference: str = "./writer.py:builder", code: str = GRAPH, **keys: Any) -> Path:
    (configured(folder, graphs={"writer": reference}, **keys) / "writer.py").write_text(code)
    return folder


def run_once(graph: Graph, values: dict[str, Any]) -> dict[str, Any]:
    return graph.build().compile().invoke(values)


def test_the_graphs_of_a_project_are_found_and_its_modules_stay_apart(tmp_path: Path) -> None:
    graphs = load_registry(copy_project(tmp_path / "project"), tmp_path / "home")
    graph = graphs["agent"]
    assert graphs.problem == ""
    assert [role.name for role in graph.roles] == ["agent"]
    assert graph.engines == {"agent": "own"}
    assert graph.langgraph_adapter is not None
    assert [kind.__name__ for kind in graph.langgraph_adapter.state_types] == ["Finding", "Mood"]
    assert "agent" not in sys.modules


def test_a_project_may_be_named_by_its_configuration_file(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    (project / "langgraph.json").rename(project / "other.json")
    by_file = load_registry(project / "other.json", tmp_path / "home")
    assert set(by_file) == {"agent"}


def test_an_edit_is_a_new_version_and_the_old_one_stays_for_its_runs(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    graphs = load_registry(project, tmp_path / "home", reloads=True)
    old = graphs["agent"]
    edit(project, "The end.", "That is all.")
    assert graphs["agent"].version != old.version
    assert find_graph_version(graphs, "agent", old.version) is old
    fresh = load_registry(project, tmp_path / "home")
    again = find_graph_version(fresh, "agent", old.version)
    assert again is not None
    assert again.version == old.version


def test_a_data_file_of_a_package_is_part_of_the_version_and_there_when_it_runs(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    before = load_project(project).version
    (project / "src/agent/phrases.md").write_text("Listen:")
    after = load_project(project).version
    graphs = load_registry(project, tmp_path / "home")
    assert before != after
    assert (tmp_path / "home/graphs" / graphs["agent"].version / "agent/phrases.md").read_text() == "Listen:"


def test_a_syntax_error_is_shown_with_its_line_and_the_old_version_keeps_serving(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    graphs = load_registry(project, tmp_path / "home", reloads=True)
    old = graphs["agent"]
    (project / "src/agent/state.py").write_text("class State(\n")
    assert graphs["agent"] is old
    assert f"{project / 'src/agent/state.py'}:1: SyntaxError" in graphs.problem


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("./gone.py:builder", ("graphs.writer", "there is no file", "gone.py:builder")),
        ("./writer.py:other", ("writer has no other", "writer:other")),
        ("a_package_that_nobody_has.graph:graph", ("graphs.writer", "a_package_that_nobody_has")),
        ("./writer.py:State", ("graphs.writer", "not a graph", "Name a StateGraph")),
        ("./my-writer.py:builder", ("graphs.writer", "cannot be imported as a module")),
    ],
)
def test_an_error_names_the_file_the_variable_and_the_remedy(
    tmp_path: Path, reference: str, parts: tuple[str, ...]
) -> None:
    project = with_graph(tmp_path / "project", reference)
    (project / "my-writer.py").write_text(GRAPH)
    graphs = load_registry(project, tmp_path / "home")
    with pytest.raises(InvalidInput) as raised:
        get_graph(graphs, "writer")
    for part in parts:
        assert part in str(raised.value)


@pytest.mark.parametrize(
    "factory",
    [
        "def made():\n    return builder\n",
        "def made(config):\n    return builder.compile(name=str(config['configurable']))\n",
        "async def made(config):\n    return builder.compile()\n",
        "def made(config, runtime):\n    return builder.compile(name=f'{runtime.access_context} {config}')\n",
        "def made(server: 'ServerRuntime'):\n    assert server.store is not None\n    return builder\n",
        "import contextlib\n\n@contextlib.asynccontextmanager\nasync def made(config):\n    yield builder\n",
    ],
)
def test_a_factory_in_any_form_makes_the_graph(tmp_path: Path, factory: str) -> None:
    project = with_graph(tmp_path / "project", "./writer.py:made", f"{GRAPH}\n{factory}")
    graph = load_registry(project, tmp_path / "home")["writer"]
    assert run_once(graph, {"topic": "gulls"})["words"] == "about gulls"
    assert graph.langgraph_adapter is not None
    assert graph.langgraph_adapter.open_graph is not None


def test_a_factory_knows_the_user_of_the_run_for_which_it_makes_the_graph(tmp_path: Path) -> None:
    factory = (
        "def made(runtime):\n    user = runtime.user\n    return builder.compile(name=user.identity if user else '-')\n"
    )
    project = with_graph(tmp_path / "project", "./writer.py:made", f"{GRAPH}\n{factory}")
    graph = load_registry(project, tmp_path / "home")["writer"]
    assert graph.build().compile().name == "-"
    adapter = graph.langgraph_adapter
    assert adapter is not None
    open_graph: Any = adapter.open_graph

    async def name_for(configurable: dict[str, Any]) -> str:
        async with open_graph(GraphOpening({"configurable": configurable}, InMemoryStore())) as built:
            return built.name

    assert asyncio.run(name_for({"langgraph_auth_user": ProjectUser({"identity": "ada"})})) == "ada"
    assert asyncio.run(name_for({})) == "-"


def test_an_entrypoint_function_is_a_graph(tmp_path: Path) -> None:
    code = "from langgraph.func import entrypoint\n\n@entrypoint()\ndef builder(topic: str):\n    return topic * 2\n"
    graph = load_registry(with_graph(tmp_path / "project", code=code), tmp_path / "home")["writer"]
    assert graph.build().compile().invoke("ab") == "abab"


def test_a_module_of_a_local_dependency_is_found_and_part_of_the_version(tmp_path: Path) -> None:
    project, library = tmp_path / "apps/agent", tmp_path / "libs/shared"
    (library / "src/common").mkdir(parents=True)
    (library / "src/common/words.py").write_text("BEGIN = 'about '\n")
    code = GRAPH.replace('"about "', "BEGIN").replace("from typing import Any", "from common.words import BEGIN")
    with_graph(project, code=code)
    configured(project, graphs={"writer": "writer:builder"}, dependencies=[".", "../../libs/shared"])
    first = load_registry(project, tmp_path / "home")["writer"]
    assert run_once(first, {"topic": "gulls"})["words"] == "about gulls"
    (library / "src/common/words.py").write_text("BEGIN = 'on '\n")
    second = load_registry(project, tmp_path / "home")["writer"]
    assert run_once(second, {"topic": "gulls"})["words"] == "on gulls"
    assert run_once(first, {"topic": "gulls"})["words"] == "about gulls"


def test_the_environment_of_a_project_is_set_when_it_is_loaded_and_stored_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_SECRET", "")
    project = with_graph(
        tmp_path / "project", code=f"import os\nassert len(os.environ['PROJECT_SECRET']) == 9\n{GRAPH}", env=".env"
    )
    (project / ".env").write_text("PROJECT_SECRET=sk-hidden\nEMPTY=\n")
    graphs = load_registry(project, tmp_path / "home")
    assert "writer" in graphs
    assert "EMPTY" not in os.environ
    stored = [file.read_text() for file in (tmp_path / "home").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert not any("sk-hidden" in text for text in stored)


def test_a_project_with_entry_points_of_offing_is_loaded_by_them(tmp_path: Path) -> None:
    project = with_graph(tmp_path / "project")
    (project / "pyproject.toml").write_text('[project.entry-points."offing.graphs"]\nlamp = "lamp:graph"\n')
    (project / "lamp.py").write_text(
        "from offing.sdk import Graph\ngraph = Graph('lamp', 'lit', '', 'any', lambda: None, lambda _: {}, ())\n"
    )
    assert set(load_registry(project, tmp_path / "home")) == {"lamp"}


def test_a_factory_makes_a_graph_for_each_run_with_its_thread(tmp_path: Path) -> None:
    code = f"""{GRAPH}
import contextlib

@contextlib.asynccontextmanager
async def made(config):
    thread = config["configurable"].get("thread_id", "none")
    opened = [thread]

    def sign(state: State):
        return {{"words": f"{{state['words']}} in {{opened}}"}}

    graph = StateGraph(State).add_node(write).add_node(sign)
    yield graph.add_edge("__start__", "write").add_edge("write", "sign").compile()
    opened.append("closed")
"""
    graph = load_registry(with_graph(tmp_path / "project", "./writer.py:made", code), tmp_path / "home")["writer"]
    run = asyncio.run(simulate_run(graph, "gulls"))
    assert run.state["words"] == "about gulls in ['run']"
    assert run.report is not None
    assert run.report.answer is not None
    assert run.report.answer.text == "about gulls in ['run']"
