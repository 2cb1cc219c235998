"""The student's tokenizer with its chat template, for text that is to be imitated."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing.core.model import Message
from offing_engine.folder import read_json, template_sha256, tokenizer_sha256
from offing_engine.pieces import Pieces


class FolderReader:
    """The tokenizer of a policy's folder. Raises InvalidInput when it has no chat template."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        template = self._tokenizer.chat_template
        if not template:
            raise InvalidInput("policy", f"{folder} has no chat template", "Use a policy whose tokenizer has one.")
        self._pieces = Pieces(self._tokenizer)
        self.tokenizer_sha256 = tokenizer_sha256(folder)
        self.template_sha256 = template_sha256(template)
        config = read_json(folder / "config.json")
        self.longest: int | None = config.get("text_config", config).get("max_position_embeddings")

    def words(self, text: str) -> list[int]:
        """Ids of text within a turn. Raises InvalidInput for what it has no tokens for."""
        ids, unknown = self._ids(text), self._tokenizer.unk_token_id
        if unknown is not None and unknown in ids:
            remedy = "Use a policy that can write any text; data.answer_introduction can be said in words that it has."
            raise InvalidInput("policy", f"its tokenizer has no tokens for {text!r}", remedy)
        return ids

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Ids up to where the assistant begins."""
        return self._ids(self._text(_said(messages), opened=True))

    def answer(self, messages: Sequence[Message], text: str) -> tuple[list[int], tuple[bytes, ...]]:
        """Ids of an assistant's words with the end of its turn, and the bytes that each decodes to.

        Raises InvalidInput when the template does not put an answer behind the prompt that it was given to.
        """
        said = _said(messages)
        prompt = self._text(said, opened=True)
        whole = self._text([*said, {"role": "assistant", "content": text}], opened=False)
        if not whole.startswith(prompt):
            problem = "its chat template does not write an answer where it asks for one"
            raise InvalidInput("policy", problem, "Use a template whose generation prompt begins an assistant's turn.")
        ids = self._ended(self._ids(whole[len(prompt) :]))
        return ids, self._pieces.of(ids)

    def _ended(self, ids: list[int]) -> list[int]:
        """Up to the first end of a turn, which is what a policy samples."""
        end = self._tokenizer.eos_token_id
        return ids[: ids.index(end) + 1] if end in ids else ids

    def _text(self, said: list[dict[str, str]], *, opened: bool) -> str:
        return self._tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=opened)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _said(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]
