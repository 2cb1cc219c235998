"""What the LangGraph projects that a process serves say of its HTTP server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config import HttpSettings
from offing.sdk import Graph
from offing.services.graph_folders import GraphProject, list_projects

RUN_HEADERS = HeaderPatterns(("x-*",))
"""Headers that runs of a project get which names none."""


def read_http_settings(paths: str) -> HttpSettings:
    """Return the `http` settings of the first project among the paths that has some, else empty ones.

    A project that cannot be read has none: what it says of graphs and authentication is rejected elsewhere.
    """
    projects = [one for one in (list_projects(paths) if paths else ()) if isinstance(one, GraphProject)]
    settings = [one.langgraph.config.http for one in projects if one.langgraph]
    if not settings:
        return HttpSettings()
    http = next((one for one in settings if one != HttpSettings()), HttpSettings())
    return http if http.configurable_headers else replace(http, configurable_headers=RUN_HEADERS)


def find_store_options(graphs: Mapping[str, Graph]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the index and the expiry of items that the graphs declare. The first graph by name decides."""
    adapters = [adapter for name in sorted(graphs) if (adapter := graphs[name].langgraph_adapter) is not None]
    index = next((one.store_index for one in adapters if one.store_index), None)
    return index, next((one.store_ttl for one in adapters if one.store_ttl), None)
