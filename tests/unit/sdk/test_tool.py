"""An own tool is declared by its function, and a function that cannot be one is rejected with the remedy."""

from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect, ToolOutput
from offing.sdk import ToolArgs, tool


class Args(ToolArgs, frozen=True):
    n: int


@tool(label="add", side_effect=SideEffect.IDEMPOTENT, timeout_seconds=5.0, sends_data_out=True)
async def add_one(args: Args, key: str) -> ToolOutput:
    """Add one."""
    return ToolOutput({"n": args.n + 1}, key)


def test_a_function_declares_its_tool() -> None:
    spec = add_one.spec
    assert (spec.name, spec.description, spec.args, spec.label) == ("add_one", "Add one.", Args, "add")
    assert (spec.side_effect, spec.timeout_seconds, spec.untrusted, spec.sends_data_out) == (
        SideEffect.IDEMPOTENT,
        5.0,
        True,
        True,
    )
    assert add_one.takes_key


async def silent(args: Args) -> ToolOutput:
    return ToolOutput({}, "")


def blocking(args: Args) -> ToolOutput:
    """Blocks."""
    return ToolOutput({}, "")


async def loose(args: dict[str, Any]) -> ToolOutput:
    """Takes anything."""
    return ToolOutput({}, "")


async def greedy(args: Args, scope: Any) -> ToolOutput:
    """Wants more than it is given."""
    return ToolOutput({}, "")


@pytest.mark.parametrize(
    ("function", "remedy"),
    [(silent, "docstring"), (blocking, "async def"), (loose, "ToolArgs"), (greedy, "`key`")],
)
def test_what_cannot_be_a_tool_is_rejected_with_the_remedy(function: Any, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=remedy):
        tool()(function)
