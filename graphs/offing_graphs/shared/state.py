"""The state of a graph, and the outputs of roles that it names.

Text is never part of the state. A node loads the step that a number names.
"""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, get_type_hints

from pydantic import BaseModel

from offing.sdk import RunContext, RunInfo, Step

OutputT = TypeVar("OutputT", bound=BaseModel)
StateUpdate = dict[str, Any]
"""The keys of the state that a node changes."""


class TurnState(TypedDict):
    """The keys that the states of most graphs have.

    Every number is 0 and every string is empty until a node sets it.
    """

    turn: int
    """Number of turns begun."""
    seen_message_seq: int
    """Seq of the last user message that was passed on."""
    stop: str
    """Reason why collecting ended, a `StopReason`. Empty means that the run continues."""


def build_initial_state(state: type[Any]) -> Callable[[RunInfo], dict[str, Any]]:
    """Return a function that returns every key with its empty value: 0, an empty string or an empty list.

    With every key in the input, no value of the thread's previous run remains.
    """

    def initial_state(_run: RunInfo) -> dict[str, Any]:
        return {key: value_type() for key, value_type in get_type_hints(state).items()}

    return initial_state


def output_from_step(step: Step, schema: type[OutputT]) -> OutputT:
    """Return the output of a role that a step records."""
    return schema.model_validate(step.payload.get("output", step.payload))


async def load_output(ctx: RunContext, seq: int, schema: type[OutputT]) -> OutputT:
    """Load the output of a role from the step with this seq."""
    return output_from_step((await ctx.get_steps([seq]))[0], schema)


async def find_output(ctx: RunContext, seq: int, schema: type[OutputT]) -> OutputT | None:
    """Load the output of a role. `None` means that `seq` is 0, so that there is no output yet."""
    return await load_output(ctx, seq, schema) if seq else None
