"""The tools that graphs may call. `registry()` returns them; none knows storage, journal or policy."""

from offing.tools.tool import Tool


def registry() -> tuple[Tool, ...]:
    """The tools that come with the platform."""
    from offing.tools.calculate import Calculate
    from offing.tools.read_source import ReadSource
    from offing.tools.search_library import SearchLibrary

    return (SearchLibrary(), ReadSource(), Calculate())


__all__ = ["Tool", "registry"]
