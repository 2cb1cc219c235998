"""The distribution that a token is drawn from, and the draw.

The only home of temperature, top-k and top-p. Everything is float32 in and out, one row a request; the draw inverts the
cumulative distribution at a uniform number that belongs to the request, so that batch mates have no part in it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one request is sampled."""

    temperature: float = 1.0
    """0: the likeliest token, with log-probability 0 and entropy 0, since nothing else could have been drawn."""
    top_p: float = 1.0
    top_k: int = 0
    """0: all tokens."""

    @property
    def truncates(self) -> bool:
        return self.top_p < 1.0 or self.top_k > 0


@dataclass(frozen=True, slots=True)
class Knobs:
    """The sampling of a batch's rows, as tensors of shape [rows]."""

    temperature: Tensor | None
    """None: 1 everywhere. Rows that are greedy have 1."""
    greedy: Tensor | None
    """None: no row is."""
    top_p: Tensor | None
    top_k: Tensor | None
    """None together: no row truncates."""


def knobs(rows: Sequence[Sampling], device: torch.device, vocabulary: int) -> Knobs:
    plain = all(row.temperature == 1.0 for row in rows)
    cut = any(row.truncates for row in rows)
    greedy = any(row.temperature == 0.0 for row in rows)
    return Knobs(
        None if plain else torch.tensor([row.temperature or 1.0 for row in rows], device=device),
        torch.tensor([row.temperature == 0.0 for row in rows], device=device) if greedy else None,
        torch.tensor([row.top_p for row in rows], device=device) if cut else None,
        torch.tensor([row.top_k or vocabulary for row in rows], device=device) if cut else None,
    )


def processed(logits: Tensor, how: Knobs) -> Tensor:
    """Log-probabilities [rows, vocabulary] that tokens are drawn from; -inf where a token cannot be drawn.

    Order as in vLLM: temperature, top-k, top-p. Top-p keeps the smallest set of likeliest tokens whose mass reaches it.
    """
    logits = logits.float()
    if how.temperature is not None:
        logits = logits / how.temperature[:, None]
    if how.top_p is not None and how.top_k is not None:
        logits = _truncated(logits, how.top_p, how.top_k)
    logprobs = torch.log_softmax(logits, dim=-1)
    return logprobs if how.greedy is None else _pointed(logprobs, how.greedy)


def _truncated(logits: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logits.shape[-1], device=logits.device)
    ordered = ordered.masked_fill(rank >= top_k[:, None], -torch.inf)
    share = torch.softmax(ordered, dim=-1)
    before = share.cumsum(dim=-1) - share
    surplus = (before >= top_p[:, None]) & (top_p < 1.0)[:, None]
    surplus[:, 0] = False
    return torch.empty_like(logits).scatter_(-1, order, ordered.masked_fill(surplus, -torch.inf))


def _pointed(logprobs: Tensor, greedy: Tensor) -> Tensor:
    """All mass on the likeliest token, in the rows that are greedy."""
    point = torch.full_like(logprobs, -torch.inf).scatter_(-1, logprobs.argmax(dim=-1, keepdim=True), 0.0)
    return torch.where(greedy[:, None], point, logprobs)


def drawn(logprobs: Tensor, uniform: Tensor) -> Tensor:
    """One id a row: the first whose cumulative probability exceeds `uniform` [rows], float64 in [0, 1)."""
    mass = logprobs.exp().double().cumsum(dim=-1)
    total = mass[:, -1]
    aim = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(mass, aim[:, None], right=True)[:, 0]


def entropy(logprobs: Tensor) -> Tensor:
    """Nats, one a row."""
    return torch.special.entr(logprobs.exp()).sum(dim=-1)


def uniforms(seed: int, count: int) -> Tensor:
    """The uniform numbers of a request's tokens, float64; a longer request's begin with the same ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, generator=generator, dtype=torch.float64)
