"""Custom tools: async functions with typed arguments and a declaration.

A custom tool receives only its arguments and, on request, a key that identifies repeats of the same
call.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import get_type_hints

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect, ToolOutput, ToolSpec

MAX_TOOL_NAME_CHARS = 64
"""Maximum number of code points of a tool's name."""


class ToolArgs(BaseModel, frozen=True, extra="forbid"):
    """Base class for the arguments of a tool. Undeclared arguments are rejected."""


class ToolFailedError(Exception):
    """An expected failure: `ToolFailedError(message)`.

    The message is a sentence that explains what to do differently.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


ToolFunction = Callable[..., Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True, eq=False)
class CustomTool:
    """A custom tool. Only graphs that name it in `Graph.tools` may call it."""

    spec: ToolSpec
    function: ToolFunction
    takes_key: bool = False
    """Whether the function takes a second argument `key`.

    The key is a text that is the same for every repeat of a call.
    """


def tool(
    *,
    label: str = "",
    side_effect: SideEffect = SideEffect.PURE,
    timeout_seconds: float = 30.0,
    untrusted: bool = True,
    sends_data_out: bool = False,
) -> Callable[[ToolFunction], CustomTool]:
    """Declare an async function as a tool by its name, its docstring and the type of its first argument.

    `label` is the word in the timeline; empty means the first word of the function's name.
    `side_effect` is the kind of side effect; unless it is `PURE`, a person must approve each call.
    `untrusted` is `False` only if nothing in the results comes from outside. `sends_data_out` means
    that the arguments are sent to third-party servers. Raises InvalidInput for a function that cannot
    be a tool.
    """

    def decorate(work: ToolFunction) -> CustomTool:
        args, keyed = _inspect_signature(work)
        name, description = work.__name__, inspect.getdoc(work) or ""
        if not description:
            raise InvalidInput(name, "a tool needs a description", "Add a docstring to the function. Planners read it.")
        if len(name) > MAX_TOOL_NAME_CHARS or not name.isidentifier():
            raise InvalidInput(
                name,
                "the name is not valid for a tool",
                f"Use a Python identifier of at most {MAX_TOOL_NAME_CHARS} characters.",
            )
        spec = ToolSpec(
            name,
            description,
            args,
            label or name.partition("_")[0],
            side_effect,
            timeout_seconds,
            untrusted,
            sends_data_out,
        )
        return CustomTool(spec, work, keyed)

    return decorate


def _inspect_signature(function: ToolFunction) -> tuple[type[BaseModel], bool]:
    """Return the type of a tool's arguments, and whether it takes the key of the call."""
    name = function.__name__
    if not inspect.iscoroutinefunction(function):
        raise InvalidInput(name, "a tool must be an async function", "Write `async def`.")
    names = list(inspect.signature(function).parameters)
    args = get_type_hints(function).get(names[0]) if names else None
    if not (isinstance(args, type) and issubclass(args, ToolArgs)):
        raise InvalidInput(
            name,
            "the first argument is not annotated with a subclass of ToolArgs",
            "Annotate it with a subclass of ToolArgs.",
        )
    if names[1:] not in ([], ["key"]):
        raise InvalidInput(
            name, f"its parameters are {', '.join(names)}", "Use one parameter for the arguments, and optionally `key`."
        )
    return args, names[1:] == ["key"]
