"""Registration of tools: custom tools, and tools of the platform with their rules in the default tool policy."""

from dataclasses import dataclass
from typing import Literal

from offing.core.tool_policy import Condition, ToolRule
from offing.registry import Group, Registry
from offing.sdk.tool import CustomTool
from offing.tools.tool import Tool

MAX_CALLS = 4_096
"""Maximum number of calls of one tool in one run under the default tool policy."""

MAX_WEB_CALLS = 512
"""The same limit for a tool that calls third-party servers."""

MAX_CODE_CALLS = 128
"""The same limit for the tool that runs code, which takes seconds of CPU time."""

Permission = Literal["", "web", "code"]
"""What the scope of a run must include so that the run has a tool. Empty means nothing."""


@dataclass(frozen=True, slots=True)
class PlatformTool:
    """A tool of the platform, which the runs of all graphs have."""

    tool: Tool
    rule: ToolRule
    """Its rule in the default tool policy."""
    position: int = 100
    """Prompts and the default tool policy list tools by position, and those of one position by name."""
    permission: Permission = ""

    @property
    def name(self) -> str:
        return self.tool.spec.name


TOOLS: Registry[PlatformTool | CustomTool] = Registry(
    Group.TOOLS,
    "a tool",
    accepts=lambda value: isinstance(value, PlatformTool | CustomTool),
    remedy="Make it with `offing.sdk.tool`.",
    name_of=lambda tool: tool.spec.name if isinstance(tool, CustomTool) else tool.name,
)
"""Tools by name: those of the platform, and custom tools that only graphs which name them may call."""


def list_platform_tools(*permissions: Permission) -> tuple[PlatformTool, ...]:
    """Return the tools of the platform that need one of these permissions, in the order of prompts."""
    tools = (tool for tool in TOOLS.values() if isinstance(tool, PlatformTool) and tool.permission in permissions)
    return tuple(sorted(tools, key=lambda tool: (tool.position, tool.name)))


def list_permissions(*, web: bool, code: bool) -> tuple[Permission, ...]:
    """Return the permissions of a run whose scope includes the web or code."""
    return ("", *(("web",) if web else ()), *(("code",) if code else ()))


def limit_length(arg: str, max_chars: int) -> Condition:
    """Return the condition that an argument is a text of 1 to `max_chars` code points."""
    return Condition(arg=arg, glob="*", min_length=1, max_length=max_chars)


LIMIT_CONDITION = Condition(arg="limit", optional=True, minimum=1, maximum=20)
"""Condition of the argument for the number of results."""

WINDOW_CONDITIONS = (
    Condition(arg="start", optional=True, minimum=0, maximum=2**31 - 1),
    Condition(arg="length", optional=True, minimum=1, maximum=6_000),
)
"""Conditions of the arguments for a window of a text."""
