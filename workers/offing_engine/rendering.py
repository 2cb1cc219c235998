"""Messages to token ids, by the tokenizer's own chat template.

The only home of exact continuation: a prompt that begins with the very ids of an earlier turn, followed by the ids of
what the template adds after it. Text that was sampled is never tokenized again.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.errors import InvalidInput

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Ids that stand for the first `messages` messages: the prompt and completion of an earlier turn."""

    ids: tuple[int, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class Prompt:
    ids: tuple[int, ...]
    prefix_used: bool | None
    """None: none was given."""


class Renderer:
    """One tokenizer with its template."""

    def __init__(self, tokenizer: Any, ends: frozenset[int], vocabulary: int) -> None:
        self._tokenizer, self._ends, self._vocabulary = tokenizer, ends, vocabulary

    def prompt(self, messages: Messages, prefix: Prefix | None, options: Mapping[str, Any]) -> Prompt:
        """The prompt's ids, up to where the assistant begins. Raises InvalidInput naming the field.

        A prefix is not used when the template does not end a turn in a way that can be told apart, or writes the first
        messages differently once others follow; then the whole text is tokenized.
        """
        whole = self._text(messages, True, options)
        if prefix is None:
            return Prompt(self.ids(whole), None)
        self.check(prefix.ids, "offing_prefix.token_ids")
        added = self._added(messages, whole, prefix, options)
        if added is None:
            return Prompt(self.ids(whole), False)
        return Prompt(prefix.ids + self.ids(added), True)

    def ids(self, text: str, special: bool = False) -> tuple[int, ...]:
        """`text` as ids; what a template writes has its special tokens already."""
        return tuple(self._tokenizer(text, add_special_tokens=special)["input_ids"])

    def check(self, ids: Sequence[int], field: str) -> None:
        """Raises InvalidInput when an id is none of the model's."""
        if any(not 0 <= id < self._vocabulary for id in ids):
            raise InvalidInput(
                field, f"an id is outside [0, {self._vocabulary})", "Send ids of this model's tokenizer."
            )

    def token(self, id: int) -> str:
        """The tokenizer's own name of an id."""
        return str(self._tokenizer.convert_ids_to_tokens(id))

    def _text(self, messages: Messages, opened: bool, options: Mapping[str, Any]) -> str:
        if not self._tokenizer.chat_template:
            raise InvalidInput("messages", "this policy has no chat template", "Use /v1/completions with token ids.")
        try:
            return self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=opened, **options
            )
        except Exception as error:  # a template is the policy's own program and may raise anything
            raise InvalidInput(
                "messages", f"the chat template refuses them: {error}", "Change roles or order."
            ) from error

    def _added(self, messages: Messages, whole: str, prefix: Prefix, options: Mapping[str, Any]) -> str | None:
        """Text after the prefix's ids, the closing of its turn included where they lack it. None: it cannot be told."""
        count = prefix.messages
        if not 0 < count <= len(messages) or messages[count - 1].get("role") != "assistant":
            return None
        first = self._text(messages[:count], False, options)
        if not whole.startswith(first) or not prefix.ids:
            return None
        closing = self._closing(first, prefix.ids[-1])
        return None if closing is None else closing + whole[len(first) :]

    def _closing(self, first: str, last: int) -> str | None:
        """What the template writes after an assistant's words and the ids do not hold yet."""
        for end in sorted(self._ends):
            mark = self._tokenizer.decode([end])
            _, found, tail = first.rpartition(mark)
            if found and not tail.strip():
                return tail if last in self._ends else mark + tail
        return None
