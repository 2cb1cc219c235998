"""Small policies with random weights, for tests, demonstrations and training from scratch.

Their shapes, tokenizers and chat template are defined here. The vocabulary is a parameter.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false
# transformers and tokenizers have partial types.

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from offing.core.errors import Conflict
from offing_engine.logs import disable_progress_bars

PAD, UNKNOWN, END = "<|pad|>", "<|unk|>", "<|end|>"
SPECIAL_TOKENS = (PAD, UNKNOWN, END, "<|system|>", "<|user|>", "<|assistant|>")

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SPACE_MARK = "▁"
"""Mark for the space before a word, inside the tokenizer only."""

ModelSize = Literal["tiny", "small"]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Width, layers and heads of a Qwen3-like model."""

    width: int
    layers: int
    heads: int
    kv_heads: int

    @property
    def feed_forward_width(self) -> int:
        """Width of the feed-forward layers."""
        return 3 * self.width


MODEL_SHAPES: dict[ModelSize, ModelShape] = {"tiny": ModelShape(64, 2, 4, 2), "small": ModelShape(128, 4, 4, 2)}

MAX_CONTEXT_TOKENS = 32_768


def create_random_policy(
    folder: Path, vocabulary: Sequence[str] | None, *, size: ModelSize = "tiny", seed: int = 0
) -> None:
    """Create a policy in `folder` with random weights drawn from `seed`.

    `vocabulary` are the words, each of which is one token. Words are separated by white space, and
    other words are read as unknown. `None` means 256 byte tokens, which can represent any text. Raises
    Conflict if the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not empty.", "Use a folder that does not exist yet.")
    tokenizer = _build_byte_tokenizer() if vocabulary is None else _build_word_tokenizer(vocabulary)
    disable_progress_bars()
    _save_model(folder, tokenizer.get_vocab_size(), MODEL_SHAPES[size], seed)
    _save_tokenizer(folder, tokenizer)


def _save_model(folder: Path, vocabulary_size: int, shape: ModelShape, seed: int) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=shape.width,
        intermediate_size=shape.feed_forward_width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=MAX_CONTEXT_TOKENS,
        tie_word_embeddings=True,
        pad_token_id=SPECIAL_TOKENS.index(PAD),
        eos_token_id=SPECIAL_TOKENS.index(END),
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = SPECIAL_TOKENS.index(END)
    model.save_pretrained(folder)


def _save_tokenizer(folder: Path, tokenizer: Any) -> None:
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=UNKNOWN, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )
    wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(folder)


def _build_word_tokenizer(vocabulary: Sequence[str]) -> Any:
    """Build a tokenizer with one token per word.

    White space is read as one space, and the first word of a text is written without its space.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    listed = [*SPECIAL_TOKENS, *(SPACE_MARK + word for word in dict.fromkeys(vocabulary))]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(listed)}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE_MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE_MARK, prepend_scheme="always")
    return _add_special_tokens(tokenizer)


def _build_byte_tokenizer() -> Any:
    """Build a tokenizer with one token per byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    listed = [*SPECIAL_TOKENS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(listed)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _add_special_tokens(tokenizer)


def _add_special_tokens(tokenizer: Any) -> Any:
    from tokenizers import AddedToken

    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS])
    return tokenizer
