"""One step of grouped-query attention without repeating keys and values for each query head.

The only home of this shortcut; everything but a single new column goes the way of transformers. The query heads that
share a key head become rows of one query, which all see the same columns.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "offing"


def use_shared_heads(model: Any) -> None:
    """Lets `model` take the shortcut, where it attends by torch's own function."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(NAME, attended)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)


def attended(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """[rows, columns, heads, width] from queries [rows, heads, columns, width]; called by transformers."""
    rows, heads, columns, width = query.shape
    if columns > 1 or heads == key.shape[1]:
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        return out, None
    shared = heads // key.shape[1]
    mask = None if attention_mask is None else attention_mask.expand(rows, 1, shared, key.shape[2])
    folded = query.reshape(rows, key.shape[1], shared, width)
    out = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=more.get("scaling"))
    return out.reshape(rows, 1, heads, value.shape[3]), None
