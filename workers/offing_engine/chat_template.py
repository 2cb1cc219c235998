"""Chat template: render messages and tokenize them.

A prompt may begin with the exact token ids of an earlier role call, followed by the ids of the text
that the template adds after it. Sampled text is never tokenized again.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.errors import InvalidInput

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TokenPrefix:
    """Token ids that stand for the first `message_count` messages of a prompt.

    They are the prompt and the completion of an earlier role call.
    """

    token_ids: tuple[int, ...]
    message_count: int


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    token_ids: tuple[int, ...]
    prefix_used: bool | None
    """Whether the prefix was used. `None` means that there was none."""


class ChatTemplate:
    """Tokenizer with its chat template."""

    def __init__(self, tokenizer: Any, end_ids: frozenset[int], vocabulary_size: int) -> None:
        self._tokenizer, self._end_ids, self._vocabulary_size = tokenizer, end_ids, vocabulary_size

    def render_prompt(self, messages: Messages, prefix: TokenPrefix | None, options: Mapping[str, Any]) -> TokenPrompt:
        """Return the token ids of the prompt, up to the beginning of the assistant's turn.

        Raises InvalidInput. A prefix is not used if the end of a turn cannot be recognized in the template,
        or if the template renders the first messages differently once others follow. Then the whole text is
        tokenized.
        """
        whole = self._apply_template(messages, True, options)
        if prefix is None:
            return TokenPrompt(self.encode(whole), None)
        self.check_ids(prefix.token_ids, "offing_prefix.token_ids")
        added = self._text_after_prefix(messages, whole, prefix, options)
        if added is None:
            return TokenPrompt(self.encode(whole), False)
        return TokenPrompt(prefix.token_ids + self.encode(added), True)

    def encode(self, text: str, add_special_tokens: bool = False) -> tuple[int, ...]:
        """Return `text` as token ids.

        Special tokens are added only on request, because templates contain them.
        """
        return tuple(self._tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])

    def check_ids(self, ids: Sequence[int], field: str) -> None:
        """Raise InvalidInput if an id is not in the model's vocabulary."""
        if any(not 0 <= id < self._vocabulary_size for id in ids):
            raise InvalidInput(
                field,
                f"an id is not in the range from 0 to {self._vocabulary_size - 1}",
                "Send ids of this model's tokenizer.",
            )

    def token_name(self, id: int) -> str:
        """Return the tokenizer's name of an id."""
        return str(self._tokenizer.convert_ids_to_tokens(id))

    def _apply_template(self, messages: Messages, add_generation_prompt: bool, options: Mapping[str, Any]) -> str:
        if not self._tokenizer.chat_template:
            raise InvalidInput("messages", "this policy has no chat template", "Use /v1/completions with token ids.")
        try:
            return self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **options,
            )
        except Exception as error:  # a template is a program of the policy and may raise anything
            raise InvalidInput(
                "messages", f"the chat template rejects them: {error}", "Change the roles or their order."
            ) from error

    def _text_after_prefix(
        self, messages: Messages, whole: str, prefix: TokenPrefix, options: Mapping[str, Any]
    ) -> str | None:
        """Return the text after the prefix's ids, including a missing end of its turn.

        `None` means that it cannot be determined.
        """
        count = prefix.message_count
        if not 0 < count <= len(messages) or messages[count - 1].get("role") != "assistant":
            return None
        first = self._apply_template(messages[:count], False, options)
        if not whole.startswith(first) or not prefix.token_ids:
            return None
        closing = self._turn_ending(first, prefix.token_ids[-1])
        return None if closing is None else closing + whole[len(first) :]

    def _turn_ending(self, first: str, last: int) -> str | None:
        """Return what the template writes after the assistant's text and the ids do not contain yet."""
        for end in sorted(self._end_ids):
            mark = self._tokenizer.decode([end])
            _, separator, tail = first.rpartition(mark)
            if separator and not tail.strip():
                return tail if last in self._end_ids else mark + tail
        return None
