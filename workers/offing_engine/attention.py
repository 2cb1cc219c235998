"""Grouped-query attention for one new column, without repeating keys and values for each query head.

The query heads that share a key head become rows of one query, which all see the same columns.
Everything else uses the attention of transformers.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers has partial types.

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION_NAME = "offing"


def use_shared_heads(model: Any) -> None:
    """Enable the shortcut for `model`, if it uses torch's own attention function."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(ATTENTION_NAME, shared_heads_attention)
    AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)
    model.set_attn_implementation(ATTENTION_NAME)


def shared_heads_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """Compute attention for transformers.

    Return [rows, columns, heads, width] from queries [rows, heads, columns, width].
    """
    rows, heads, columns, width = query.shape
    if columns > 1 or heads == key.shape[1]:
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        return out, None
    shared = heads // key.shape[1]
    mask = None if attention_mask is None else attention_mask.expand(rows, 1, shared, key.shape[2])
    folded = query.reshape(rows, key.shape[1], shared, width)
    out = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=more.get("scaling"))
    return out.reshape(rows, 1, heads, value.shape[3]), None
