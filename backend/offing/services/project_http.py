"""What the LangGraph projects that a process serves say of its HTTP server."""

from collections.abc import Mapping
from typing import Any

from offing.core.langgraph_config import HttpSettings
from offing.sdk import Graph
from offing.services.graph_folders import GraphProject, list_projects


def read_http_settings(paths: str) -> HttpSettings:
    """Return the `http` settings of the first project among the paths that has some, else empty ones.

    A project that cannot be read has none: what it says of graphs and authentication is rejected elsewhere.
    """
    for one in list_projects(paths) if paths else ():
        if isinstance(one, GraphProject) and one.langgraph and one.langgraph.config.http != HttpSettings():
            return one.langgraph.config.http
    return HttpSettings()


def find_store_options(graphs: Mapping[str, Graph]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the index and the expiry of items that the graphs declare. The first graph by name decides."""
    adapters = [adapter for name in sorted(graphs) if (adapter := graphs[name].langgraph_adapter) is not None]
    index = next((one.store_index for one in adapters if one.store_index), None)
    return index, next((one.store_ttl for one in adapters if one.store_ttl), None)
