"""Distribution of the next token, and sampling from it.

Temperature, top-k and top-p are applied here. Everything is float32, with one row per request.
Sampling inverts the cumulative distribution at a uniform number that belongs to the request, so
that the result does not depend on other requests of the batch.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling parameters of one request."""

    temperature: float = 1.0
    """`0` selects the most likely token, with logprob 0 and entropy 0, because no other token is possible."""
    top_p: float = 1.0
    top_k: int = 0
    """`0` means all tokens."""

    @property
    def is_truncated(self) -> bool:
        return self.top_p < 1.0 or self.top_k > 0


@dataclass(frozen=True, slots=True)
class SamplingTensors:
    """Sampling parameters of the rows of a batch, as tensors of shape [rows]."""

    temperature: Tensor | None
    """`None` means 1 for all rows. Greedy rows have 1."""
    greedy: Tensor | None
    """`None` means that no row is greedy."""
    top_p: Tensor | None
    top_k: Tensor | None
    """Both are `None` if no row truncates."""


def build_sampling_tensors(
    rows: Sequence[SamplingParams], device: torch.device, vocabulary_size: int
) -> SamplingTensors:
    plain = all(row.temperature == 1.0 for row in rows)
    cut = any(row.is_truncated for row in rows)
    greedy = any(row.temperature == 0.0 for row in rows)
    return SamplingTensors(
        None if plain else torch.tensor([row.temperature or 1.0 for row in rows], device=device),
        torch.tensor([row.temperature == 0.0 for row in rows], device=device) if greedy else None,
        torch.tensor([row.top_p for row in rows], device=device) if cut else None,
        torch.tensor([row.top_k or vocabulary_size for row in rows], device=device) if cut else None,
    )


def compute_logprobs(logits: Tensor, params: SamplingTensors) -> Tensor:
    """Return the logprobs [rows, vocabulary] that tokens are sampled from; -inf for impossible tokens.

    The order is that of vLLM: temperature, top-k, top-p. Top-p keeps the smallest set of most likely
    tokens whose probability reaches it.
    """
    logits = logits.float()
    if params.temperature is not None:
        logits = logits / params.temperature[:, None]
    if params.top_p is not None and params.top_k is not None:
        logits = _truncate(logits, params.top_p, params.top_k)
    logprobs = torch.log_softmax(logits, dim=-1)
    return logprobs if params.greedy is None else _to_greedy(logprobs, params.greedy)


def _truncate(logits: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logits.shape[-1], device=logits.device)
    ordered = ordered.masked_fill(rank >= top_k[:, None], -torch.inf)
    share = torch.softmax(ordered, dim=-1)
    before = share.cumsum(dim=-1) - share
    surplus = (before >= top_p[:, None]) & (top_p < 1.0)[:, None]
    surplus[:, 0] = False
    return torch.empty_like(logits).scatter_(-1, order, ordered.masked_fill(surplus, -torch.inf))


def _to_greedy(logprobs: Tensor, greedy: Tensor) -> Tensor:
    """Give the whole probability to the most likely token, in greedy rows."""
    point = torch.full_like(logprobs, -torch.inf).scatter_(-1, logprobs.argmax(dim=-1, keepdim=True), 0.0)
    return torch.where(greedy[:, None], point, logprobs)


def sample_tokens(logprobs: Tensor, uniform: Tensor) -> Tensor:
    """Sample one id per row.

    It is the first id whose cumulative probability exceeds `uniform` [rows], float64 in [0, 1).
    """
    mass = logprobs.exp().double().cumsum(dim=-1)
    total = mass[:, -1]
    aim = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(mass, aim[:, None], right=True)[:, 0]


def compute_entropy(logprobs: Tensor) -> Tensor:
    """Return the entropy of each row in nats."""
    return torch.special.entr(logprobs.exp()).sum(dim=-1)


def draw_uniforms(seed: int, count: int) -> Tensor:
    """Return a request's uniform numbers, float64. A longer request begins with the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, generator=generator, dtype=torch.float64)
