"""Prompts by the chat template, and exact continuation of an earlier turn."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from offing.core.errors import InvalidInput
from offing_engine.chat_template import ChatTemplate, TokenPrefix
from offing_engine.token_decoder import TokenDecoder
from tests.engine.chat_policy import create_chat_policy

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


def assistant_message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def renderer(folder: Path, template: str | None = None) -> tuple[Any, ChatTemplate]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template or tokenizer.chat_template
    return tokenizer, ChatTemplate(tokenizer, frozenset([tokenizer.eos_token_id]), len(tokenizer))


@pytest.fixture
def words(policies: dict[str, Path]) -> tuple[Any, ChatTemplate]:
    return renderer(policies["words@1"])


def test_a_prompt_ends_where_the_assistant_begins(words: tuple[Any, ChatTemplate]):
    tokenizer, render = words
    result = render.render_prompt([USER], None, {})
    assert tokenizer.decode(result.token_ids) == "<|user|> w1 w2<|end|><|assistant|>"
    assert result.prefix_used is None


@pytest.mark.parametrize("ended", [True, False])
def test_an_earlier_turns_very_ids_continue(words: tuple[Any, ChatTemplate], ended: bool):
    tokenizer, render = words
    first = render.render_prompt([USER], None, {}).token_ids
    drawn = tuple(tokenizer.convert_tokens_to_ids(["▁w3", "▁w4"])) + ((tokenizer.eos_token_id,) if ended else ())
    result = render.render_prompt([USER, assistant_message("w3 w4"), NEXT], TokenPrefix(first + drawn, 2), {})
    assert result.prefix_used is True
    assert result.token_ids[: len(first + drawn)] == first + drawn
    assert result.token_ids == render.render_prompt([USER, assistant_message("w3 w4"), NEXT], None, {}).token_ids


def test_ids_that_the_text_would_not_give_are_kept(policies: dict[str, Path]):
    """Half a character, which reads as a replacement character, is never tokenized again."""
    tokenizer, render = renderer(policies["bytes@1"])
    first = render.render_prompt([USER], None, {}).token_ids
    half = TokenDecoder(tokenizer).decode_each(ids := tuple(tokenizer("ä", add_special_tokens=False)["input_ids"][:1]))
    text = b"".join(half).decode("utf-8", "replace")
    result = render.render_prompt([USER, assistant_message(text), NEXT], TokenPrefix(first + ids, 2), {})
    assert result.prefix_used is True
    assert result.token_ids[: len(first) + 1] == first + ids
    assert result.token_ids != render.render_prompt([USER, assistant_message(text), NEXT], None, {}).token_ids


@pytest.mark.parametrize("ended", [True, False])
def test_what_the_template_writes_after_an_end_of_turn_is_added(policies: dict[str, Path], ended: bool):
    tokenizer, render = renderer(policies["bytes@1"], WITH_NEWLINES)
    first = render.render_prompt([USER], None, {}).token_ids
    drawn = render.encode("yes") + ((tokenizer.eos_token_id,) if ended else ())
    result = render.render_prompt([USER, assistant_message("yes"), NEXT], TokenPrefix(first + drawn, 2), {})
    assert result.prefix_used is True
    assert result.token_ids == render.render_prompt([USER, assistant_message("yes"), NEXT], None, {}).token_ids


TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


def test_a_real_template_renders_tools_calls_and_results_and_earlier_ids_continue(tmp_path: Path):
    """The end of a turn is followed by a line break, which the sampled ids do not have."""
    tokenizer, render = renderer(create_chat_policy(tmp_path / "chat", ["Look up the offing. " * 20]))
    call = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "offing"}}}
    question = [{"role": "system", "content": "Be brief."}, USER]
    reply: list[dict[str, Any]] = [{**assistant_message("I look."), "tool_calls": [call]}]
    result = [{"role": "tool", "content": "the sea"}]
    first = render.render_prompt(question, None, {"tools": [TOOL]}).token_ids
    text = tokenizer.decode(first)
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n<tools>\n{")
    assert text.endswith("<|im_start|>user\nw1 w2<|im_end|>\n<|im_start|>assistant\n")
    drawn = render.encode('I look.\n<tool_call>\n{"name": "look_up", "arguments": {"word": "offing"}}\n</tool_call>')
    prefix = TokenPrefix((*first, *drawn, tokenizer.eos_token_id), 3)
    prompt = render.render_prompt([*question, *reply, *result], prefix, {"tools": [TOOL]})
    assert prompt.prefix_used is True
    assert prompt.token_ids == render.render_prompt([*question, *reply, *result], None, {"tools": [TOOL]}).token_ids
    assert "<tool_response>\nthe sea\n</tool_response>" in tokenizer.decode(prompt.token_ids)


def test_a_template_that_rewrites_earlier_messages_is_not_continued(policies: dict[str, Path]):
    _, render = renderer(policies["words@1"], THINKING)
    messages = [USER, assistant_message("w3"), NEXT]
    result = render.render_prompt(messages, TokenPrefix(render.render_prompt([USER], None, {}).token_ids, 2), {})
    assert result.prefix_used is False
    assert result.token_ids == render.render_prompt(messages, None, {}).token_ids


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_prefix_that_ends_in_no_answer_is_not_used(words: tuple[Any, ChatTemplate], count: int):
    _, render = words
    result = render.render_prompt([USER, assistant_message("w3"), NEXT], TokenPrefix((4, 5, 6), count), {})
    assert result.prefix_used is False


def test_ids_of_another_tokenizer_are_rejected(words: tuple[Any, ChatTemplate]):
    _, render = words
    with pytest.raises(InvalidInput, match="offing_prefix"):
        render.render_prompt([USER, assistant_message("w3")], TokenPrefix((4, 5_000), 2), {})


def test_a_role_that_the_template_rejects_is_the_callers_error(policies: dict[str, Path]):
    _, render = renderer(policies["words@1"], "{{ raise_exception('no such role') }}")
    with pytest.raises(InvalidInput, match="no such role"):
        render.render_prompt([USER], None, {})


def test_token_texts_of_words_join_to_their_text(policies: dict[str, Path]):
    tokenizer, _ = renderer(policies["words@1"])
    ids = tokenizer.convert_tokens_to_ids(["▁w3", "▁w4", "<|end|>", "▁w5"] + ["▁w6"] * 20)
    pieces = TokenDecoder(tokenizer).decode_each(ids)
    assert b"".join(pieces).decode() == tokenizer.decode(ids, skip_special_tokens=True)
    assert pieces[:4] == (b"w3", b" w4", b"", b" w5")


def test_token_texts_of_bytes_are_the_bytes(policies: dict[str, Path]):
    tokenizer, _ = renderer(policies["bytes@1"])
    text = "Zoë — \t東京\n\x00\x7f"
    pieces = TokenDecoder(tokenizer).decode_each(tokenizer(text + "<|end|>")["input_ids"])
    assert b"".join(pieces) == text.encode()
    assert all(len(piece) == 1 for piece in pieces[:-1])
    assert pieces[-1] == b""


def test_token_texts_of_merged_bytes_are_the_bytes(tmp_path: Path):
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
    assert b"".join(TokenDecoder(tokenizer).decode_each(ids)) == text.encode()
