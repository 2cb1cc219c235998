"""The graphs of a LangGraph project, registered under the names in its `langgraph.json`."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from offing import environment
from offing.core.errors import InvalidInput
from offing.registry import Group
from offing.sdk import Graph
from offing.services.graph_folders import GraphProject, copy_version, load_entry_points, load_target
from offing.services.langgraph_projects import LangGraphProject, read_project_env

EMBEDDINGS_MODULE = "langchain.embeddings"


def load_langgraph_graphs(project: GraphProject, data_dir: Path) -> tuple[Graph, ...]:
    """Load the graphs of a project from its copy, with its environment variables set in this process.

    Raises InvalidInput that names the file, the variable and what to do.
    """
    from offing.langchain.project_graph import register_project_graph  # imports LangChain, which takes half a second

    source = project.langgraph
    assert source is not None
    apply_project_env(source)
    code = copy_version(project, data_dir)
    store_index = _build_store_index(project, source, data_dir)
    values = load_entry_points(project, data_dir, Group.GRAPHS)
    described = {one.name: one for one in source.config.graphs}
    graphs: list[Graph] = []
    for name, value in values.items():
        field = f"{source.file}: graphs.{name} ({described[name].reference})"
        graphs.append(
            register_project_graph(
                name,
                value,
                field=field,
                code_path=code,
                version=project.version,
                description=described[name].description,
                store_index=store_index,
                store_ttl=_build_store_ttl(source),
            )
        )
    return tuple(graphs)


def apply_project_env(project: LangGraphProject) -> None:
    """Set the project's environment variables in this process, as LangGraph's server does.

    They are set when graphs are loaded, after Offing has read its own settings, so a project's DATABASE_URL never
    becomes Offing's. A variable without a value is not set.
    """
    for name, value in read_project_env(project.file, project.config).items():
        if value:
            environment.set_variable(name, value)


def _build_store_ttl(project: LangGraphProject) -> dict[str, Any] | None:
    ttl = project.config.store_ttl
    if ttl is None:
        return None
    return {"refresh_on_read": ttl.refresh_on_read} | ({"default_ttl": ttl.default_ttl} if ttl.default_ttl else {})


def _build_store_index(project: GraphProject, source: LangGraphProject, data_dir: Path) -> dict[str, Any] | None:
    index = source.config.store_index
    if index is None:
        return None
    embed = load_target(project, data_dir, source.embed) if source.embed else _find_embeddings(source, index.embed)
    return {"dims": index.dims, "embed": embed} | ({"fields": list(index.fields)} if index.fields else {})


def _find_embeddings(project: LangGraphProject, name: str) -> Any:
    """Return the embedding model of a name such as `openai:text-embedding-3-small`."""
    field = f"{project.file}: store.index.embed"
    if find_spec("langchain") is None:
        raise InvalidInput(field, f"{name!r} needs the package langchain", "Install langchain, or name a function.")
    make: Any = import_module(EMBEDDINGS_MODULE).init_embeddings
    try:
        return make(name)
    except (ImportError, ValueError) as error:
        raise InvalidInput(field, f"{name!r} cannot be used: {error}", "Correct it, or install its package.") from None
