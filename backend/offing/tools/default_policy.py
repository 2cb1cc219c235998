"""The default tool policy of a run that was submitted without its own."""

from offing.core.tool_policy import ToolPolicy
from offing.tools.environment import list_environment_tools
from offing.tools.platform_tool import list_permissions, list_platform_tools


def default_tool_policy(*, web: bool = False, code: bool = False) -> ToolPolicy:
    """Return the rules for the tools of the platform and of environments, within the limits of their schemas.

    `web` adds the tools that access the web, for a run that was submitted with it. `code` adds the tool
    that runs code, likewise.
    """
    permissions = list_permissions(web=web, code=code)
    tools = (*list_platform_tools(""), *list_environment_tools(), *list_platform_tools(*permissions[1:]))
    return ToolPolicy(rules=tuple(tool.rule for tool in tools))
