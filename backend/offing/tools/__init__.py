"""The tools that graphs may call. `registry()` returns them; none knows storage, journal or policy."""

from collections.abc import Sequence

from offing.sdk.tool import OwnTool
from offing.tools.tool import Tool


def registry(
    world: str = "", *, web: bool = False, code: bool = False, own: Sequence[OwnTool] = ()
) -> tuple[Tool, ...]:
    """The tools that a run may know: those that come with the platform, or its world's instead. Empty: in no world.

    `web`: those that reach the web, too. `code`: the one that runs code, too. `own`: tools that the run's
    graph brings along, wherever it runs.
    """
    if own:
        from offing.tools.own import Own

        return (*registry(world, web=web, code=code), *map(Own, own))
    if world:
        from offing.tools.world_tools import world_tools

        return world_tools()
    from offing.tools.calculate import Calculate
    from offing.tools.read_source import ReadSource
    from offing.tools.search_library import SearchLibrary

    return (
        SearchLibrary(),
        ReadSource(),
        Calculate(),
        *(_web_tools() if web else ()),
        *(_code_tools() if code else ()),
    )


def _web_tools() -> tuple[Tool, ...]:
    from offing.tools.fetch_page import FetchPage
    from offing.tools.web_search import WebSearch

    return (WebSearch(), FetchPage())


def _code_tools() -> tuple[Tool, ...]:
    from offing.tools.run_python import RunPython

    return (RunPython(),)


def reserved() -> frozenset[str]:
    """Names that no own tool may have."""
    from offing.tools.world_tools import world_tools

    return frozenset(tool.spec.name for tool in (*registry(web=True, code=True), *world_tools()))


__all__ = ["Tool", "registry", "reserved"]
