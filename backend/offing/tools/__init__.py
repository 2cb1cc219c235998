"""Tools that graphs may call, and adapters for custom tools. `create_tools()` returns those of a run."""

from collections.abc import Sequence

from offing.sdk.tool import CustomTool
from offing.tools.tool import Tool


def create_tools(
    environment: str = "", *, web: bool = False, code: bool = False, custom: Sequence[CustomTool] = ()
) -> tuple[Tool, ...]:
    """Return the tools of a run: those of the platform, or those of its environment instead.

    An empty `environment` means that the run uses the library. `web` adds the tools that use the web, `code` the
    one that runs code, and `custom` the tools of the run's graph. Raises InvalidInput for an unknown environment.
    """
    from offing.tools.custom import CustomToolAdapter
    from offing.tools.environment import get_environment
    from offing.tools.platform_tool import list_permissions, list_platform_tools

    permissions = list_permissions(web=web, code=code)
    tools = get_environment(environment).tools if environment else list_platform_tools(*permissions)
    return (*(one.tool for one in tools), *map(CustomToolAdapter, custom))


def reserved_tool_names() -> frozenset[str]:
    """Return the names that no custom tool may have."""
    from offing.tools.environment import list_environment_tools
    from offing.tools.platform_tool import list_permissions, list_platform_tools

    platform_tools = list_platform_tools(*list_permissions(web=True, code=True))
    return frozenset(one.name for one in (*platform_tools, *list_environment_tools()))


__all__ = ["Tool", "create_tools", "reserved_tool_names"]
