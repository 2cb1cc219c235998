"""The model table: litellm's list of models on disk, with their limits. litellm is not imported."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from offing.core.model import ReasoningEffort

FILE_NAME = "model_prices_and_context_window_backup.json"
EFFORTS: tuple[str, ...] = get_args(ReasoningEffort)
CHAT_MODES = frozenset({"chat", "responses"})
"""Modes of the models that can answer a role."""
SELF_HOSTED_PROVIDERS = frozenset(
    {"ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "infinity"}
)
"""Providers without prices. Their limits are those with which the server was started, not the table's.

litellm would contact their servers to look up a model, which blocks the event loop.
"""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What the model table says about a model."""

    context_tokens: int | None = None
    """Maximum tokens of a prompt. Many models count the completion, too. `None` means unknown."""
    output_tokens: int | None = None
    """Maximum tokens of a completion, including thinking. `None` means unknown."""
    supports_reasoning: bool = False
    """Whether the model can think before it answers. `False` also means unknown."""
    supports_prompt_caching: bool = False
    """Whether the provider can reuse the beginning of a prompt. `False` also means unknown."""
    rejected_efforts: frozenset[str] = frozenset()
    """Levels of reasoning effort that a reasoning model is known to reject."""
    is_listed: bool = True
    """`False` means that the table does not have the model."""

    @property
    def efforts(self) -> tuple[str, ...]:
        """Levels of reasoning effort that are not known to be rejected. Empty if the model does not think."""
        return tuple(effort for effort in EFFORTS if effort not in self.rejected_efforts) * self.supports_reasoning

    def accepts_effort(self, effort: str) -> bool:
        """Return whether a listed model accepts a level. A model that does not think accepts `none`."""
        return effort in self.efforts if self.supports_reasoning else effort == "none"


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Prices of a model in USD per million tokens. `None` means unknown."""

    input_usd: float | None = None
    """Of prompt tokens."""
    output_usd: float | None = None
    """Of completion tokens."""


UNKNOWN_LIMITS = ModelLimits(is_listed=False)


def find_model_limits(model: str) -> ModelLimits:
    """Return the limits of a litellm model, such as `openai/gpt-4o`.

    Everything is unknown for a model that is not in the table and for a self-hosted provider.
    """
    listed = _find_listed(model)
    return listed[0] if listed else UNKNOWN_LIMITS


def find_model_price(model: str) -> ModelPrice:
    """Return the prices of a litellm model, which are unknown for the same models as its limits."""
    listed = _find_listed(model)
    return listed[1] if listed else ModelPrice()


def _find_listed(model: str) -> tuple[ModelLimits, ModelPrice] | None:
    provider, slash, name = model.partition("/")
    if not slash or provider in SELF_HOSTED_PROVIDERS:
        return None
    listed = _read_table()
    return listed.get((provider, model)) or listed.get((provider, name))


def read_model_rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Read the chat models from disk with their properties. Empty if the list is not found."""
    spec = find_spec("litellm")
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], FILE_NAME) if folders else None
    if path is None or not path.is_file():
        return
    rows: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    for model, row in rows.items():
        if row.get("mode") in CHAT_MODES:
            yield model, row


@cache
def _read_table() -> Mapping[tuple[str, str], tuple[ModelLimits, ModelPrice]]:
    """Return limits and prices by provider and name. Most names contain the provider, but not all."""
    return {(provider_of_row(row), model): (_read_limits(row), read_price(row)) for model, row in read_model_rows()}


def read_price(row: Mapping[str, Any]) -> ModelPrice:
    """Return the prices of a row, which has them per token."""
    return ModelPrice(
        _price_per_million(row.get("input_cost_per_token")), _price_per_million(row.get("output_cost_per_token"))
    )


def _price_per_million(value: Any) -> float | None:
    return round(float(value) * 1_000_000, 6) if isinstance(value, (int, float)) else None


def provider_of_row(row: Mapping[str, Any]) -> str:
    """Return the provider as model names begin with it: `bedrock` for litellm's `bedrock_converse`."""
    listed = str(row.get("litellm_provider", ""))
    family = next((name for name in ("vertex_ai", "bedrock", "cohere") if listed.startswith(name)), None)
    return family or listed


def _read_limits(row: Mapping[str, Any]) -> ModelLimits:
    return ModelLimits(
        _positive_or_none(row.get("max_input_tokens")),
        _positive_or_none(row.get("max_output_tokens")),
        row.get("supports_reasoning") is True,
        row.get("supports_prompt_caching") is True,
        frozenset(effort for effort in EFFORTS if row.get(f"supports_{effort}_reasoning_effort") is False),
    )


def _positive_or_none(value: Any) -> int | None:
    """Return a number of tokens. The list has 0 or a text where it is unknown."""
    return int(value) if isinstance(value, (int, float)) and value > 0 else None
