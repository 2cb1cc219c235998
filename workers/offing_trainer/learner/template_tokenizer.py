"""The tokenizer of a policy's folder with its chat template, for SFT text."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing.core.model import Message
from offing.models.policy_folder import hash_template, hash_tokenizer, read_json
from offing_engine.token_decoder import TokenDecoder


class TemplateTokenizer:
    """The tokenizer of a policy's folder. Raises InvalidInput if it has no chat template."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        template = self._tokenizer.chat_template
        if not template:
            raise InvalidInput("policy", f"{folder} has no chat template", "Use a policy whose tokenizer has one.")
        self._token_decoder = TokenDecoder(self._tokenizer)
        self.tokenizer_sha256 = hash_tokenizer(folder)
        self.template_sha256 = hash_template(template)
        config = read_json(folder / "config.json")
        self.max_tokens: int | None = config.get("text_config", config).get("max_position_embeddings")

    def encode_text(self, text: str) -> list[int]:
        """Tokenize text within a turn. Raises InvalidInput for text that it has no tokens for."""
        ids, unknown = self._tokenize(text), self._tokenizer.unk_token_id
        if unknown is not None and unknown in ids:
            remedy = "Use a policy that can represent any text, or use words of its vocabulary in data.answer_prefix."
            raise InvalidInput("policy", f"its tokenizer has no tokens for {text!r}", remedy)
        return ids

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokenize messages up to where the assistant's turn begins."""
        return self._tokenize(self._apply_template(_to_chat_dicts(messages), add_generation_prompt=True))

    def encode_answer(self, messages: Sequence[Message], text: str) -> tuple[list[int], tuple[bytes, ...]]:
        """Tokenize an assistant's text with its end-of-turn token.

        Returns the ids and the bytes that each of them decodes to. Raises InvalidInput if the template does
        not put an answer directly after its generation prompt.
        """
        chat = _to_chat_dicts(messages)
        prompt = self._apply_template(chat, add_generation_prompt=True)
        full_text = self._apply_template([*chat, {"role": "assistant", "content": text}], add_generation_prompt=False)
        if not full_text.startswith(prompt):
            problem = "its chat template does not put the answer directly after the generation prompt"
            raise InvalidInput("policy", problem, "Use a template whose generation prompt begins an assistant message.")
        ids = self._cut_after_eos(self._tokenize(full_text[len(prompt) :]))
        return ids, self._token_decoder.decode_each(ids)

    def _cut_after_eos(self, ids: list[int]) -> list[int]:
        """Cut ids after the first end-of-turn token, as in a sampled completion."""
        end = self._tokenizer.eos_token_id
        return ids[: ids.index(end) + 1] if end in ids else ids

    def _apply_template(self, messages: list[dict[str, str]], *, add_generation_prompt: bool) -> str:
        return self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=add_generation_prompt
        )

    def _tokenize(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _to_chat_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]
