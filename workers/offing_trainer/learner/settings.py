"""Settings of a learner. This module does not import torch, so configurations load fast."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

ValueColumn = Literal["value_high", "value_low", "value_switch", "value_keep", "value"]
"""Of `offing_trainer.plugin.COLUMNS`."""

NonNegativeRate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _FrozenSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LoraSettings(_FrozenSettings):
    """Low-rank adapters instead of training all weights (Hu et al., LoRA, 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    """The adapter's output is scaled by alpha / rank."""
    target_modules: tuple[str, ...] = ()
    """Suffixes of the names of adapted layers. Empty means every linear layer except the output head."""


class CriticSettings(_FrozenSettings):
    """Value heads, for estimators that need value columns."""

    columns: tuple[ValueColumn, ...] = ("value",)
    trunk: Literal["copy", "shared", "detached"] = "copy"
    """`copy` uses separate layers, initialized from the policy.
    `shared` uses the policy's layers and trains them too. `detached` uses the policy's layers without
    training them.
    """
    learning_rate: NonNegativeRate = 1e-4


class LearnerSettings(_FrozenSettings):
    """All settings of a learner except its initial weights."""

    kind: Literal["full", "lora"] = "full"
    lora_settings: LoraSettings = LoraSettings()
    """Only for kind `lora`. Ignored if the policy is already an adapter, which is then trained further."""
    critic: CriticSettings | None = None
    learning_rate: NonNegativeRate = 1e-5
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    """Number of steps over which the learning rate rises to its maximum."""
    schedule_steps: int | None = Field(default=None, ge=1)
    """Number of steps of the schedule, including the warm-up. Only `cosine` needs it."""
    min_learning_rate_fraction: float = Field(default=0.0, ge=0, le=1)
    """Final learning rate of `cosine`, as a fraction of the maximum."""
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = Field(default=1e-8, gt=0)
    weight_decay: NonNegativeRate = 0.0
    max_grad_norm: float | None = Field(default=1.0, gt=0)
    """Maximum norm of the gradient; the critic's is clipped separately. `None` means no clipping."""
    max_tokens_per_micro_batch: int = Field(default=4096, ge=1)
    """Maximum tokens of a micro-batch, including padding. A longer row has its own micro-batch."""
    packing: bool = False
    """Concatenate rows into one sequence instead of padding them.
    This helps if attention skips what its block-diagonal mask hides (flash or flex attention). With
    torch's own attention, the cost is quadratic in the total length.
    """
    precision: Literal["fp32", "bf16"] = "fp32"
    """Precision of the computation. Trained weights are always kept in float32."""
    gradient_checkpointing: bool = False
    """Recompute layers in the backward pass instead of storing them.
    This needs less memory and a third more time.
    """
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` uses a GPU if there is one."""
    cpu_threads: int | None = Field(default=None, ge=1)
    """Number of torch threads on a CPU.
    `None` keeps torch's default. Equal numbers give bitwise equal results.
    """
    sharded: bool = False
    """Shard weights over all processes (FSDP2). Only if several processes were launched."""
    seed: int = 0
    """Seed of a new adapter's weights. Nothing is drawn after that."""
