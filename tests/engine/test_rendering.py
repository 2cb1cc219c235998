"""Prompts by the chat template, and exact continuation of an earlier turn."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from offing.core.errors import InvalidInput
from offing_engine.pieces import Pieces
from offing_engine.rendering import Prefix, Renderer

USER = {"role": "user", "content": "w1 w2"}
NEXT = {"role": "user", "content": "w9"}

THINKING = (
    "{% for message in messages %}<|{{ message.role }}|>"
    "{{ message.content if loop.last or message.role == 'user' else '' }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Leaves out what was said before, as templates do that drop earlier thoughts."""

WITH_NEWLINES = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def renderer(folder: Path, template: str | None = None) -> tuple[Any, Renderer]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template or tokenizer.chat_template
    return tokenizer, Renderer(tokenizer, frozenset([tokenizer.eos_token_id]), len(tokenizer))


@pytest.fixture
def words(policies: dict[str, Path]) -> tuple[Any, Renderer]:
    return renderer(policies["words@1"])


def test_a_prompt_ends_where_the_assistant_begins(words: tuple[Any, Renderer]):
    tokenizer, render = words
    found = render.prompt([USER], None, {})
    assert tokenizer.decode(found.ids) == "<|user|> w1 w2<|end|><|assistant|>"
    assert found.prefix_used is None


@pytest.mark.parametrize("ended", [True, False])
def test_an_earlier_turns_very_ids_go_on(words: tuple[Any, Renderer], ended: bool):
    tokenizer, render = words
    first = render.prompt([USER], None, {}).ids
    drawn = tuple(tokenizer.convert_tokens_to_ids(["▁w3", "▁w4"])) + ((tokenizer.eos_token_id,) if ended else ())
    found = render.prompt([USER, said("w3 w4"), NEXT], Prefix(first + drawn, 2), {})
    assert found.prefix_used is True
    assert found.ids[: len(first + drawn)] == first + drawn
    assert found.ids == render.prompt([USER, said("w3 w4"), NEXT], None, {}).ids


def test_ids_that_the_text_would_not_give_are_kept(policies: dict[str, Path]):
    """Half a character, which reads as a replacement character, is never tokenized again."""
    tokenizer, render = renderer(policies["bytes@1"])
    first = render.prompt([USER], None, {}).ids
    half = Pieces(tokenizer).of(ids := tuple(tokenizer("ä", add_special_tokens=False)["input_ids"][:1]))
    text = b"".join(half).decode("utf-8", "replace")
    found = render.prompt([USER, said(text), NEXT], Prefix(first + ids, 2), {})
    assert found.prefix_used is True
    assert found.ids[: len(first) + 1] == first + ids
    assert found.ids != render.prompt([USER, said(text), NEXT], None, {}).ids


@pytest.mark.parametrize("ended", [True, False])
def test_what_the_template_writes_after_an_end_of_turn_is_added(policies: dict[str, Path], ended: bool):
    tokenizer, render = renderer(policies["bytes@1"], WITH_NEWLINES)
    first = render.prompt([USER], None, {}).ids
    drawn = render.ids("yes") + ((tokenizer.eos_token_id,) if ended else ())
    found = render.prompt([USER, said("yes"), NEXT], Prefix(first + drawn, 2), {})
    assert found.prefix_used is True
    assert found.ids == render.prompt([USER, said("yes"), NEXT], None, {}).ids


def test_a_template_that_rewrites_earlier_messages_is_not_continued(policies: dict[str, Path]):
    _, render = renderer(policies["words@1"], THINKING)
    messages = [USER, said("w3"), NEXT]
    found = render.prompt(messages, Prefix(render.prompt([USER], None, {}).ids, 2), {})
    assert found.prefix_used is False
    assert found.ids == render.prompt(messages, None, {}).ids


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_prefix_that_ends_in_no_answer_is_not_used(words: tuple[Any, Renderer], count: int):
    _, render = words
    found = render.prompt([USER, said("w3"), NEXT], Prefix((4, 5, 6), count), {})
    assert found.prefix_used is False


def test_ids_of_another_tokenizer_are_refused(words: tuple[Any, Renderer]):
    _, render = words
    with pytest.raises(InvalidInput, match="offing_prefix"):
        render.prompt([USER, said("w3")], Prefix((4, 5_000), 2), {})


def test_a_role_that_the_template_refuses_is_the_callers_error(policies: dict[str, Path]):
    _, render = renderer(policies["words@1"], "{{ raise_exception('no such role') }}")
    with pytest.raises(InvalidInput, match="no such role"):
        render.prompt([USER], None, {})


def test_pieces_of_words_join_to_their_text(policies: dict[str, Path]):
    tokenizer, _ = renderer(policies["words@1"])
    ids = tokenizer.convert_tokens_to_ids(["▁w3", "▁w4", "<|end|>", "▁w5"] + ["▁w6"] * 20)
    pieces = Pieces(tokenizer).of(ids)
    assert b"".join(pieces).decode() == tokenizer.decode(ids, skip_special_tokens=True)
    assert pieces[:4] == (b"w3", b" w4", b"", b" w5")


def test_pieces_of_bytes_are_the_bytes(policies: dict[str, Path]):
    tokenizer, _ = renderer(policies["bytes@1"])
    text = "Zoë — \t東京\n\x00\x7f"
    pieces = Pieces(tokenizer).of(tokenizer(text + "<|end|>")["input_ids"])
    assert b"".join(pieces) == text.encode()
    assert all(len(piece) == 1 for piece in pieces[:-1])
    assert pieces[-1] == b""


def test_pieces_of_merged_bytes_are_the_bytes(tmp_path: Path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer, bare.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    text = "the sea, the sea — la mer où je suis, the offing 沖 沖 " * 5
    bare.train_from_iterator([text], trainers.BpeTrainer(vocab_size=300, initial_alphabet=letters, show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bare)
    ids = tokenizer(text)["input_ids"]
    assert len(ids) < len(text.encode())
    assert b"".join(Pieces(tokenizer).of(ids)) == text.encode()
