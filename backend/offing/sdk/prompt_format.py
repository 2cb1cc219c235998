"""Prompt formats: alternatives to asking a role for JSON by its output's schema."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from offing.core.model import InvalidOutput, Message
from offing.core.text_repair import RepairedText
from offing.core.tokens import CompletionSpan
from offing.sdk.type_vars import Input, Output


def _find_no_spans(_: str) -> tuple[CompletionSpan, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class PromptFormat(Generic[Input, Output]):
    """A named rendering with its parser.

    `text` is for models without tool calling, `compact` for small planners.
    """

    name: str
    render: Callable[[Input], tuple[Message, ...]]
    """Renders the prompt.

    A format that only appends repeats earlier messages unchanged, and completions with their `turn`.
    """
    parse: Callable[[str, Input], Output | InvalidOutput]
    """Parses one completion strictly, without end-of-turn marks. Never raises for the text of a model."""
    spans: Callable[[str], tuple[CompletionSpan, ...]] = _find_no_spans
    """Returns the labeled ranges of a completion, from the same parse as the output. They never overlap."""
    write: Callable[[Any, Input], str] | None = None
    """Renders an output as a model with this input would have written it.

    Rule-based roles thereby give text for SFT. Parsing the text gives the same output. `None` means
    that rule-based roles cannot use this format.
    """
    stop: tuple[str, ...] = ()
    """Stop sequences. They belong to the completion."""
    max_tokens: int | None = None
    """Maximum tokens of a completion of a policy, so that one that does not stop is cut off early.

    A completion that reaches it is invalid. `None` means only the limit of the engine config.
    """
    repair: Callable[[str, Input], RepairedText] | None = None
    """Rewrites a completion of a provider's model into the form that `parse` accepts.

    It changes only the form and leaves a valid completion unchanged. It is never applied to a policy,
    whose completions are parsed as sampled. `None` means that nothing is repaired.
    """
