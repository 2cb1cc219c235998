"""A policy's files as weights that can be moved: all of them, or a LoRA adapter over them.

The only home of opening a folder for training. Dropout is off: what is trained is what was sampled from.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers and peft carry partial types.

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from offing.core.errors import InvalidInput
from offing_engine.folder import BASE_NOTE, checked_folder, is_adapter, read_json, weights_sha256
from offing_engine.logs import quiet
from offing_trainer.learner.settings import Lora, Settings

ATTENDING = {"full_attention", "sliding_attention", "chunked_attention"}
"""Kinds of layers that see earlier tokens only through attention."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A causal language model in memory."""

    model: Any
    """As transformers made it, with an adapter's layers inside where there is one."""
    adapted: Any
    """peft's wrapping of it. None: all weights are moved."""
    folder: Path
    """Of the policy: an adapter's own, or that of full weights."""
    base: Path
    """Of full weights."""

    @property
    def kind(self) -> Literal["full", "lora"]:
        return "full" if self.adapted is None else "lora"

    @property
    def packs(self) -> bool:
        """Whether rows end to end cannot reach one another: no layer carries anything but by attention."""
        return set(getattr(self.model.config, "layer_types", None) or ATTENDING) <= ATTENDING


def opened(policy: Path, base: Path | None, settings: Settings) -> Opened:
    """`policy` to be moved as `settings` say. `base`: the full weights under an adapter. Raises InvalidInput."""
    checked_folder(policy, "policy")
    full = _full_weights(policy, base, settings)
    model = _loaded(full, settings)
    adapted = _adapted(model, policy, full, settings) if settings.kind == "lora" else None
    if adapted is None:
        model.float().requires_grad_(True)
    _still(model)
    if settings.checkpointing:
        _computed_twice(model)
    return Opened(model.train(settings.checkpointing), adapted, policy, full)


def _full_weights(policy: Path, base: Path | None, settings: Settings) -> Path:
    if not is_adapter(policy):
        return policy
    if settings.kind == "full":
        raise InvalidInput("kind", f"{policy} is an adapter", "Use kind lora, or export it as full weights.")
    if base is None:
        raise InvalidInput("base", f"{policy} is an adapter", "Name the folder of the weights under it.")
    noted = read_json(policy / BASE_NOTE).get("weights_sha256")
    if noted is not None and noted != weights_sha256(checked_folder(base, "base")):
        raise InvalidInput("base", f"{policy} was trained over other weights", f"They have the hash {noted}.")
    return base


def _loaded(folder: Path, settings: Settings) -> Any:
    """In 32 bits where all weights are moved; frozen weights in the precision of the arithmetic."""
    from transformers import AutoModelForCausalLM

    quiet()
    short = settings.kind == "lora" and settings.precision == "bf16"
    dtype = torch.bfloat16 if short else torch.float32
    try:
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(
            "policy", f"{folder} cannot be loaded: {first}", "Give a folder made by save_pretrained."
        ) from error


def _adapted(model: Any, policy: Path, base: Path, settings: Settings) -> Any:
    from peft import PeftModel, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if is_adapter(policy):
            adapted: Any = PeftModel.from_pretrained(model, policy, is_trainable=True)
        else:
            adapted = get_peft_model(model, _lora(settings.lora, model, base))
    _in_32_bits(adapted)
    return adapted


def _lora(lora: Lora, model: Any, base: Path) -> Any:
    from peft import LoraConfig, TaskType
    from transformers.pytorch_utils import Conv1D

    head = model.get_output_embeddings()
    layers: dict[str, nn.Module] = dict(model.named_modules())
    linear = {name: m for name, m in layers.items() if isinstance(m, nn.Linear | Conv1D) and m is not head}
    return LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        base_model_name_or_path=str(base),
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # peft divides it by the rank, whatever number it is
        lora_dropout=0.0,
        target_modules=list(lora.targets) or sorted({name.rpartition(".")[2] for name in linear}),
        fan_in_fan_out=any(isinstance(layer, Conv1D) for layer in linear.values()),
    )


def _computed_twice(model: Any) -> None:
    """transformers 6 has the new name alone, and 5.0 the old one."""
    newer = getattr(model, "activation_checkpointing_enable", None)
    (newer or model.gradient_checkpointing_enable)({"use_reentrant": False})


def _in_32_bits(model: nn.Module) -> None:
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()


def _still(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "attn_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def moved(module: nn.Module) -> Mapping[str, nn.Parameter]:
    """Weights that have a gradient, by name; tied ones once."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
