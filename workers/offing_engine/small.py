"""Small policies with random weights, for tests, demonstrations and training from scratch.

The only home of their shape, their tokenizers and their chat template. Knows no task: the vocabulary is given.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false
# transformers and tokenizers carry partial types.

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from offing.core.errors import Conflict
from offing_engine.logs import quiet

PAD, UNKNOWN, END = "<|pad|>", "<|unk|>", "<|end|>"
SPECIAL = (PAD, UNKNOWN, END, "<|system|>", "<|user|>", "<|assistant|>")

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SPACE = "▁"
"""Stands for the space in front of a word, inside the tokenizer only."""

Size = Literal["tiny", "small"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Width, layers and heads of a Qwen3-like model."""

    width: int
    layers: int
    heads: int
    kv_heads: int

    @property
    def inner(self) -> int:
        """Width of the feed-forward part."""
        return 3 * self.width


SHAPES: dict[Size, Shape] = {"tiny": Shape(64, 2, 4, 2), "small": Shape(128, 4, 4, 2)}

MOST_CONTEXT = 32_768


def new_policy(folder: Path, words: Sequence[str] | None, *, size: Size = "tiny", seed: int = 0) -> None:
    """Makes `folder` a policy with random weights drawn from `seed`.

    `words` are the vocabulary: each is one token, words are separated by white space, and what is not among them reads
    as unknown. None: 256 byte tokens, which can write any text. Raises Conflict when the folder holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not empty.", "Name a folder that does not exist yet.")
    tokenizer = _byte_tokenizer() if words is None else _word_tokenizer(words)
    quiet()
    _save_model(folder, tokenizer.get_vocab_size(), SHAPES[size], seed)
    _save_tokenizer(folder, tokenizer)


def _save_model(folder: Path, vocabulary: int, shape: Shape, seed: int) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=MOST_CONTEXT,
        tie_word_embeddings=True,
        pad_token_id=SPECIAL.index(PAD),
        eos_token_id=SPECIAL.index(END),
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = SPECIAL.index(END)
    model.save_pretrained(folder)


def _save_tokenizer(folder: Path, tokenizer: Any) -> None:
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=UNKNOWN, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )
    wrapped.chat_template = TEMPLATE
    wrapped.save_pretrained(folder)


def _word_tokenizer(words: Sequence[str]) -> Any:
    """One token a word. White space reads as one space; the first word of a text is written without its space."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    listed = [*SPECIAL, *(SPACE + word for word in dict.fromkeys(words))]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(listed)}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    return _with_special(tokenizer)


def _byte_tokenizer() -> Any:
    """One token a byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    listed = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(listed)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_special(tokenizer)


def _with_special(tokenizer: Any) -> Any:
    from tokenizers import AddedToken

    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return tokenizer
