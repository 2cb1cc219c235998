"""Log-probability and entropy of tokens from hidden states, with derivatives written out.

The only home of the output head's arithmetic. Logits are made only where they are asked for; where they are many, a
stretch at a time, and once more on the way back. Temperature is as the policy engine has it: logits are divided by it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

LOGITS_AT_ONCE = 1 << 26
"""Logits that are in memory together: a quarter of a gigabyte."""

Head = Callable[[Tensor], Tensor]


def scored(head: Head, hidden: Tensor, wanted: Tensor, heat: Tensor | None, vocabulary: int) -> tuple[Tensor, Tensor]:
    """(log-probability, entropy) in nats, float32 (n,), of `wanted` (n,) after hidden states (n, width).

    `heat`: (n,) temperatures. None: 1 everywhere.
    """
    stretch = max(1, LOGITS_AT_ONCE // vocabulary)
    if len(wanted) <= stretch:
        return _of_stretch(head, hidden, wanted, heat)
    found = [
        checkpoint(
            _of_stretch, head, hidden[a:b], wanted[a:b], None if heat is None else heat[a:b], use_reentrant=False
        )
        for a, b in ((a, a + stretch) for a in range(0, len(wanted), stretch))
    ]
    return torch.cat([logp for logp, _ in found]), torch.cat([nats for _, nats in found])


def _of_stretch(head: Head, hidden: Tensor, wanted: Tensor, heat: Tensor | None) -> tuple[Tensor, Tensor]:
    logits = head(hidden).float()
    if heat is not None:
        logits = logits / heat[:, None]
    found: Any = _Scores.apply(logits, wanted)
    return found


class _Scores(torch.autograd.Function):
    """For p = softmax(z), H its entropy and y the token:

    d log p_y / dz = 1[y] - p        dH / dz = -p (log p + H)
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        logps = torch.log_softmax(logits, dim=-1)
        chosen = logps.gather(1, wanted[:, None])[:, 0]
        entropy = -torch.einsum("nv,nv->n", logps.exp(), logps)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logps, wanted, entropy)
        return chosen, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, None]:
        by_logp, by_entropy = grads
        logps, wanted, entropy = ctx.saved_tensors
        if by_logp is None and by_entropy is None:
            return None, None
        share = logps.exp()
        out = torch.zeros_like(share) if by_entropy is None else (logps + entropy[:, None]) * share
        if by_entropy is not None:
            out.mul_(-by_entropy[:, None])
        if by_logp is not None:
            out.sub_(share.mul_(by_logp[:, None]))
            out.scatter_add_(1, wanted[:, None], by_logp[:, None])
        return out, None
