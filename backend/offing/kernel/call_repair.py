"""Repairs of a tool call that need no second call of a model: the tool's name and its arguments.

A call is repaired only if it would be rejected otherwise and exactly one call can be meant. The tool
policy decides about the repaired call. For a tool with a side effect nothing is left out and no
similar value is taken, because an argument that is ignored may have been a limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from offing.core.output_problems import describe_problems, render_example
from offing.core.tool import SideEffect, ToolSpec
from offing.core.value_repair import ValueRepair, find_nearest, find_same_name, repair_value
from offing.sdk import ToolCall
from offing.tools.tool import Tool

TOOL_NAME = "tool_name"


@dataclass(frozen=True, slots=True)
class RepairedCall:
    """A call that is executed in place of the requested one."""

    call: ToolCall
    requested: ToolCall
    repairs: tuple[ValueRepair, ...]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.repairs))

    @property
    def notices(self) -> list[str]:
        """Sentences that say what was repaired."""
        return [one.note for one in self.repairs]


def repair_call(call: ToolCall, tools: Mapping[str, Tool]) -> RepairedCall | None:
    """Return the call that is meant. `None` means that the call is valid, or that it cannot be repaired."""
    name = call.tool if call.tool in tools else find_same_name(call.tool, list(tools))
    if name is None:
        return None
    renamed = () if name == call.tool else (ValueRepair(TOOL_NAME, "", f"{call.tool!r} was taken as {name!r}."),)
    spec = tools[name].spec
    if _is_valid(spec, call):
        return RepairedCall(ToolCall(name, call.args), call, renamed) if renamed else None
    repaired = repair_value(spec.args.model_json_schema(), call.args, lossless=spec.side_effect is not SideEffect.PURE)
    if not (renamed or repaired.repairs):
        return None
    return RepairedCall(ToolCall(name, repaired.value), call, (*renamed, *repaired.repairs))


def describe_unknown_tool(name: str, tools: Mapping[str, Tool]) -> str:
    """Describe a call of an unknown tool, for a model that will try again."""
    nearest = find_nearest(name, list(tools))
    suggestion = f" Did you mean {nearest}?" if nearest else ""
    return f"There is no tool {name!r}.{suggestion} Use one of: {', '.join(sorted(tools))}."


def describe_invalid_args(spec: ToolSpec, error: ValidationError) -> str:
    """Describe invalid arguments, for a model that will try again: each field, its value and what is expected."""
    problems = describe_problems(error, "arguments")
    return f"{problems} The arguments of {spec.name} are: {render_example(spec.args.model_json_schema())}"


def _is_valid(spec: ToolSpec, call: ToolCall) -> bool:
    try:
        spec.args.model_validate(call.args)
    except ValidationError:
        return False
    return True
