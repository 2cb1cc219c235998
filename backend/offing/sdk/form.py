"""Other ways to ask a role and to read its answer than JSON by its output's schema."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from offing.core.model import Message, Unusable
from offing.core.tokens import TextSpan
from offing.sdk.values import Input, Output


def _no_spans(_: str) -> tuple[TextSpan, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Form(Generic[Input, Output]):
    """A named rendering with its parser. `plain` is for models without tool calling, `compact` for small planners."""

    name: str
    render: Callable[[Input], tuple[Message, ...]]
    """The prompt. A form that only appends repeats earlier messages as they were, completions with their `turn`."""
    parse: Callable[[str, Input], Output | Unusable]
    """Reads one completion strictly, end-of-turn marks left out. Never raises for what a model wrote."""
    spans: Callable[[str], tuple[TextSpan, ...]] = _no_spans
    """What the stretches of a completion are; found by the same parse as the output. Never overlapping."""
    write: Callable[[Any, Input], str] | None = None
    """An output as a model with this input would have written it, so that rules leave text to imitate. What it wrote is
    read back as the same output. None: rules cannot be written in this form."""
    stop: tuple[str, ...] = ()
    """Strings after which sampling ends; they belong to the completion."""
