"""A tool that a graph brings along: an async function over typed arguments, with its declaration.

The only home of what an author writes a tool with. Knows no run, no library and no policy: an own tool is given its
arguments, and where it asks for it the key under which a repeat of the same call is known.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import get_type_hints

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.tool import Effect, ToolOutput, ToolSpec

NAMED = 64
"""Code points of a tool's name at most."""


class ToolArgs(BaseModel, frozen=True, extra="forbid"):
    """Base of every tool's arguments: what is not declared is refused."""


class ToolFailed(Exception):
    """An expected failure: `ToolFailed(message)` says in a sentence what to do differently."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Work = Callable[..., Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True, eq=False)
class OwnTool:
    """A tool outside the platform's own. A graph that names it in `Graph.tools` may call it, and no other graph may."""

    spec: ToolSpec
    work: Work
    keyed: bool = False
    """It takes a second argument `key`: the same text on every repeat of the same call."""


def tool(
    *,
    verb: str = "",
    effect: Effect = Effect.PURE,
    timeout_seconds: float = 30.0,
    untrusted: bool = True,
    outward: bool = False,
) -> Callable[[Work], OwnTool]:
    """Make a tool of an async function: its name, its docstring and the type of its first argument declare it.

    `verb`: the word in a timeline; empty: the first word of the function's name. `effect`: before a call of one that
    is not `PURE` a person is asked. `untrusted`: False only for results in which nothing comes
    from outside. `outward`: its arguments leave for other people's servers. Raises InvalidInput for a function that
    cannot be a tool.
    """

    def made(work: Work) -> OwnTool:
        args, keyed = _signature(work)
        name, said = work.__name__, inspect.getdoc(work) or ""
        if not said:
            raise InvalidInput(name, "A tool says what it does", "Give the function a docstring; planners read it.")
        if len(name) > NAMED or not name.isidentifier():
            raise InvalidInput(name, "It is no name for a tool", f"Use a plain name of at most {NAMED} characters.")
        spec = ToolSpec(name, said, args, verb or name.partition("_")[0], effect, timeout_seconds, untrusted, outward)
        return OwnTool(spec, work, keyed)

    return made


def _signature(work: Work) -> tuple[type[BaseModel], bool]:
    """The type of a tool's arguments, and whether it wants the call's key."""
    name = work.__name__
    if not inspect.iscoroutinefunction(work):
        raise InvalidInput(name, "A tool is an async function", "Write `async def`.")
    names = list(inspect.signature(work).parameters)
    args = get_type_hints(work).get(names[0]) if names else None
    if not (isinstance(args, type) and issubclass(args, ToolArgs)):
        raise InvalidInput(
            name, "Its first argument has no type that refuses what is not declared", "Type it with a ToolArgs class."
        )
    if names[1:] not in ([], ["key"]):
        raise InvalidInput(name, f"It takes {', '.join(names)}", "Take the arguments, and `key` if it is wanted.")
    return args, names[1:] == ["key"]
