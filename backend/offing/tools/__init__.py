"""The tools that graphs may call. `registry()` returns them; none knows storage, journal or policy."""

from collections.abc import Sequence

from offing.sdk.tool import OwnTool
from offing.tools.tool import Tool


def registry(world: str = "", *, web: bool = False, own: Sequence[OwnTool] = ()) -> tuple[Tool, ...]:
    """The tools that a run may know: those that come with the platform, or its world's instead. Empty: in no world.

    `web`: those that reach the web, too. `own`: tools that the run's graph brings along, wherever it runs.
    """
    if own:
        from offing.tools.own import Own

        return (*registry(world, web=web), *map(Own, own))
    if world:
        from offing.tools.world_tools import world_tools

        return world_tools()
    from offing.tools.calculate import Calculate
    from offing.tools.read_source import ReadSource
    from offing.tools.search_library import SearchLibrary

    return (SearchLibrary(), ReadSource(), Calculate(), *(_web_tools() if web else ()))


def _web_tools() -> tuple[Tool, ...]:
    from offing.tools.fetch_page import FetchPage
    from offing.tools.web_search import WebSearch

    return (WebSearch(), FetchPage())


def reserved() -> frozenset[str]:
    """Names that no own tool may have."""
    from offing.tools.world_tools import world_tools

    return frozenset(tool.spec.name for tool in (*registry(web=True), *world_tools())) | {"run_python"}


__all__ = ["Tool", "registry", "reserved"]
