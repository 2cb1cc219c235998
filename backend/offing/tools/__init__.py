"""The tools that graphs may call. `registry()` returns them; none knows storage, journal or policy."""

from offing.tools.tool import Tool


def registry(world: str = "") -> tuple[Tool, ...]:
    """The tools that a run may know: those that come with the platform, or its world's instead. Empty: in no world."""
    if world:
        from offing.tools.world_tools import world_tools

        return world_tools()
    from offing.tools.calculate import Calculate
    from offing.tools.read_source import ReadSource
    from offing.tools.search_library import SearchLibrary

    return (SearchLibrary(), ReadSource(), Calculate())


__all__ = ["Tool", "registry"]
