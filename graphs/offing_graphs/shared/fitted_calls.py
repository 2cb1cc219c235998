"""Role calls whose prompts are fitted to the context window of the model."""

import re
from typing import TypeVar

from pydantic import BaseModel

from offing.sdk import (
    BoundaryReason,
    EngineFailure,
    FailureKind,
    Message,
    Role,
    RoleReply,
    RunContext,
    StepDraft,
    StepKind,
)
from offing_graphs.shared.schemas import RoleInput
from offing_graphs.shared.token_estimate import estimate_tokens

InputT = TypeVar("InputT", bound=RoleInput)
OutputT = TypeVar("OutputT", bound=BaseModel)

WINDOW = "window"
"""Label of a note about a window."""
MAX_NOTES = 64
"""Maximum number of notes that are read back."""
MIN_CONTEXT_TOKENS = 2_048
"""The smallest context window that a prompt is fitted to."""

_WINDOW = re.compile(
    r"(?:maximum context length|context (?:size|length|window|limit))\D{0,20}(\d[\d,]*)|>\s*(\d[\d,]*) maximum", re.I
)
"""How providers name the window of a model when a prompt is longer."""


async def call_fitted(
    ctx: RunContext,
    role: Role[InputT, OutputT],
    inputs: InputT,
    *,
    turn: int = 0,
    boundary: BoundaryReason | None = None,
) -> RoleReply[OutputT] | EngineFailure:
    """Call a role with a prompt that fits.

    If the provider answers that the prompt is too long, the window was not known or the table of models is
    wrong. The call is then repeated once with a shorter prompt. A note says so, from which later calls of the
    role know the window.
    """
    context_tokens = await find_context_tokens(ctx, role.name)
    fitted = inputs if context_tokens is None else inputs.model_copy(update={"context_tokens": context_tokens})
    reply = await ctx.call_role(role, fitted, turn=turn, boundary=boundary)
    if not isinstance(reply, EngineFailure) or reply.kind is not FailureKind.CONTEXT_TOO_LONG:
        return reply
    context_tokens = learn_context_tokens(reply.message, role.render(fitted), context_tokens)
    await ctx.append_steps(draft_window_note(role.name, context_tokens, turn))
    shorter = fitted.model_copy(update={"context_tokens": context_tokens})
    return await ctx.call_role(role, shorter, turn=turn, boundary=boundary)


async def find_context_tokens(ctx: RunContext, role: str) -> int | None:
    """Return the window of the model that answers a role, as its provider or else the platform knows it."""
    notes = await ctx.last_steps(StepKind.NOTE, MAX_NOTES)
    learned = [s.payload["context_tokens"] for s in notes if s.label == WINDOW and s.payload.get("role") == role]
    return int(learned[-1]) if learned else ctx.get_context_tokens(role)


def learn_context_tokens(message: str, prompt: tuple[Message, ...], assumed_tokens: int | None) -> int:
    """Return the context window that follows from a provider's error.

    It is the number that the message names if that is less than what was assumed, else the estimated size of
    the prompt that was too long. A prompt for such a window has about two thirds of it.
    """
    match = _WINDOW.search(message)
    named = int(next(filter(None, match.groups())).replace(",", "")) if match else 0
    if named >= MIN_CONTEXT_TOKENS and (assumed_tokens is None or named < assumed_tokens):
        return named
    size = estimate_tokens(*(part for one in prompt for part in one.parts))
    return max(MIN_CONTEXT_TOKENS, size if assumed_tokens is None else min(size, assumed_tokens * 3 // 4))


def draft_window_note(role: str, context_tokens: int, turn: int) -> StepDraft:
    """Return a step draft that says which window was learned from a provider's error."""
    payload = {"role": role, "context_tokens": context_tokens}
    title = f"The model of the {role} holds about {context_tokens:,} tokens; its prompt is shortened"
    return StepDraft(StepKind.NOTE, title, payload, WINDOW, "Set context_tokens to avoid this.", turn=turn)
