"""What the LangGraph projects that a process serves say of its HTTP server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from offing.core.errors import InvalidInput
from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config import HttpSettings
from offing.sdk import Graph
from offing.services.graph_folders import GraphProject, list_projects
from offing.services.langgraph_projects import LangGraphProject

RUN_HEADERS = HeaderPatterns(("x-*",))
"""Headers that runs of a project get which names none."""


def read_http_settings(paths: str) -> HttpSettings:
    """Return the `http` settings of the project among the paths that has some, else empty ones.

    A project that cannot be read has none: what it says of graphs and authentication is rejected elsewhere. Raises
    InvalidInput if two projects have some, because one server has one of them.
    """
    projects = [one for one in (list_projects(paths) if paths else ()) if isinstance(one, GraphProject)]
    of_langgraph = [one.langgraph for one in projects if one.langgraph]
    if not of_langgraph:
        return HttpSettings()
    chosen = find_one_project(of_langgraph, "http", lambda project: project.config.http != HttpSettings())
    http = chosen.config.http if chosen else HttpSettings()
    return http if http.configurable_headers else replace(http, configurable_headers=RUN_HEADERS)


def find_one_project(
    projects: Sequence[LangGraphProject], key: str, has_key: Callable[[LangGraphProject], bool]
) -> LangGraphProject | None:
    """Return the project that has a key of the server. `None` means that none has it.

    Raises InvalidInput that names both files if two have it.
    """
    matches = [one for one in projects if has_key(one)]
    if len(matches) > 1:
        files = " and ".join(str(one.file) for one in matches[:2])
        raise InvalidInput(key, f"two projects have it: {files}", "Serve them separately.")
    return matches[0] if matches else None


def find_store_options(graphs: Mapping[str, Graph]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the index and the expiry of items that the graphs declare. The first graph by name decides."""
    adapters = [adapter for name in sorted(graphs) if (adapter := graphs[name].langgraph_adapter) is not None]
    index = next((one.store_index for one in adapters if one.store_index), None)
    return index, next((one.store_ttl for one in adapters if one.store_ttl), None)
