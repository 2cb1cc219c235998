"""Logprobs and entropies of tokens from hidden states, with explicit gradients.

Logits are computed only at the requested positions. If there are many, they are computed in chunks,
and once more in the backward pass. As in the policy engine, logits are divided by the temperature.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

MAX_LOGITS = 1 << 26
"""Maximum number of logits in memory at a time, a quarter of a gigabyte."""

OutputHead = Callable[[Tensor], Tensor]


def compute_token_logprobs(
    head: OutputHead, hidden: Tensor, targets: Tensor, temperature: Tensor | None, vocabulary: int
) -> tuple[Tensor, Tensor]:
    """Return logprobs and entropies of the targets (n,) after hidden states (n, width).

    Both are in nats, float32, (n,). `temperature` is (n,); `None` means 1 everywhere.
    """
    chunk_size = max(1, MAX_LOGITS // vocabulary)
    if len(targets) <= chunk_size:
        return _compute_chunk(head, hidden, targets, temperature)
    chunks = [
        checkpoint(
            _compute_chunk,
            head,
            hidden[a:b],
            targets[a:b],
            None if temperature is None else temperature[a:b],
            use_reentrant=False,
        )
        for a, b in ((a, a + chunk_size) for a in range(0, len(targets), chunk_size))
    ]
    return torch.cat([logp for logp, _ in chunks]), torch.cat([nats for _, nats in chunks])


def _compute_chunk(
    head: OutputHead, hidden: Tensor, targets: Tensor, temperature: Tensor | None
) -> tuple[Tensor, Tensor]:
    logits = head(hidden).float()
    if temperature is not None:
        logits = logits / temperature[:, None]
    outputs: Any = _LogprobsAndEntropy.apply(logits, targets)
    return outputs


class _LogprobsAndEntropy(torch.autograd.Function):
    """Log-softmax at the target and entropy, with their gradients.

    For p = softmax(z), its entropy H and the token y:

        d log p_y / dz = 1[y] - p        dH / dz = -p (log p + H)
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logps = torch.log_softmax(logits, dim=-1)
        logprobs = logps.gather(1, targets[:, None])[:, 0]
        entropy = -torch.einsum("nv,nv->n", logps.exp(), logps)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logps, targets, entropy)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, None]:
        by_logp, by_entropy = grads
        logps, target_ids, entropy = ctx.saved_tensors
        if by_logp is None and by_entropy is None:
            return None, None
        probabilities = logps.exp()
        out = torch.zeros_like(probabilities) if by_entropy is None else (logps + entropy[:, None]) * probabilities
        if by_entropy is not None:
            out.mul_(-by_entropy[:, None])
        if by_logp is not None:
            out.sub_(probabilities.mul_(by_logp[:, None]))
            out.scatter_add_(1, target_ids[:, None], by_logp[:, None])
        return out, None
