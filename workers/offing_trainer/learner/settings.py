"""How a learner learns, as a configuration names it. Needs no torch, so that a configuration is checked without it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

ValueColumn = Literal["value_high", "value_low", "value_term", "value_kept", "value"]
"""Of `offing_trainer.seam.COLUMNS`."""

Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Lora(_Checked):
    """Low-rank adapters in place of moving all weights (Hu et al., LoRA, 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    """The adapter's part is scaled by alpha / rank."""
    targets: tuple[str, ...] = ()
    """Ends of the names of layers that get one. Empty: every linear layer but the output head."""


class Critic(_Checked):
    """Heads that say how much a turn is worth, for estimators that need columns of values."""

    columns: tuple[ValueColumn, ...] = ("value",)
    trunk: Literal["copy", "shared", "detached"] = "copy"
    """copy: layers of its own, which start as the policy's. shared: the policy's, which it moves too. detached: the
    policy's, as they are."""
    learning_rate: Rate = 1e-4


class Settings(_Checked):
    """Everything of a learner but the weights that it starts from."""

    kind: Literal["full", "lora"] = "full"
    lora: Lora = Lora()
    """Only for kind `lora`, and not for a policy that is an adapter already: it goes on as it is."""
    critic: Critic | None = None
    learning_rate: Rate = 1e-5
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: int = Field(default=0, ge=0)
    """Steps over which the rate rises to its height."""
    steps: int | None = Field(default=None, ge=1)
    """Steps that the schedule is laid out for, warm-up included; only cosine needs it."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Share of the rate at which cosine ends."""
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = Field(default=1e-8, gt=0)
    weight_decay: Rate = 0.0
    gradient_clip: float | None = Field(default=1.0, gt=0)
    """Largest norm of the gradient; the critic's is cut by itself. None: not cut."""
    tokens_per_microbatch: int = Field(default=4096, ge=1)
    """Tokens that are forwarded together, padding included; a longer row goes by itself."""
    packing: bool = False
    """Rows end to end in one sequence instead of beside one another: no padding. It pays where attention skips what
    its block-diagonal mask hides (flash or flex attention); by torch's own it costs the square of the whole."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of the arithmetic. Weights that are moved are kept in 32 bits in both."""
    checkpointing: bool = False
    """Layers are computed a second time instead of being kept for the way back: less memory, a third more time."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    threads: int | None = Field(default=None, ge=1)
    """Of torch, on a CPU. None: as they are. The same number gives the same bits."""
    sharded: bool = False
    """Weights lie spread over all processes (FSDP2); only where several were launched."""
    seed: int = 0
    """Of a new adapter's weights. Nothing is drawn later."""
