"""Opening of a policy's files for training: all weights, or a LoRA adapter over them.

Dropout is off, so the trained distribution is the one that was sampled from.
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
from offing.models.policy_folder import BASE_FILE, check_folder, hash_weights, is_adapter, read_json
from offing_engine.logs import disable_progress_bars
from offing_trainer.learner.settings import LearnerSettings, LoraSettings

ATTENTION_LAYER_TYPES = {"full_attention", "sliding_attention", "chunked_attention"}
"""Types of layers in which tokens affect each other only through attention."""


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A causal language model in memory."""

    model: Any
    """The transformers model, including the layers of an adapter if there is one."""
    peft_model: Any
    """The PEFT model around it. `None` means that all weights are trained."""
    folder: Path
    """Folder of the policy, an adapter or full weights."""
    base_folder: Path
    """Folder of the full weights."""

    @property
    def kind(self) -> Literal["full", "lora"]:
        return "full" if self.peft_model is None else "lora"

    @property
    def can_pack(self) -> bool:
        """Return whether concatenated rows cannot affect each other, since all layers are attention layers."""
        return set(getattr(self.model.config, "layer_types", None) or ATTENTION_LAYER_TYPES) <= ATTENTION_LAYER_TYPES


def open_model(policy: Path, base: Path | None, settings: LearnerSettings) -> OpenedModel:
    """Open `policy` for training. `base` is the folder of the full weights under an adapter.

    Raises InvalidInput.
    """
    check_folder(policy, "policy")
    full = _resolve_full_weights(policy, base, settings)
    model = _load_model(full, settings)
    adapted = _add_adapter(model, policy, full, settings) if settings.kind == "lora" else None
    if adapted is None:
        model.float().requires_grad_(True)
    _disable_dropout(model)
    if settings.gradient_checkpointing:
        _enable_gradient_checkpointing(model)
    return OpenedModel(model.train(settings.gradient_checkpointing), adapted, policy, full)


def _resolve_full_weights(policy: Path, base: Path | None, settings: LearnerSettings) -> Path:
    if not is_adapter(policy):
        return policy
    if settings.kind == "full":
        raise InvalidInput("kind", f"{policy} is an adapter", "Use kind lora, or export the policy as full weights.")
    if base is None:
        raise InvalidInput(
            "base", f"is missing, but {policy} is an adapter", "Set it to the folder of the adapter's base weights."
        )
    noted = read_json(policy / BASE_FILE).get("weights_sha256")
    if noted is not None and noted != hash_weights(check_folder(base, "base")):
        raise InvalidInput(
            "base", f"{policy} was trained over other weights", f"Use the weights with the hash {noted}."
        )
    return base


def _load_model(folder: Path, settings: LearnerSettings) -> Any:
    """Load the model in float32 if all weights are trained. Frozen weights use `precision`."""
    from transformers import AutoModelForCausalLM

    disable_progress_bars()
    short = settings.kind == "lora" and settings.precision == "bf16"
    dtype = torch.bfloat16 if short else torch.float32
    try:
        return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(
            "policy", f"{folder} cannot be loaded: {first}", "Use a folder that save_pretrained has written."
        ) from error


def _add_adapter(model: Any, policy: Path, base: Path, settings: LearnerSettings) -> Any:
    from peft import PeftModel, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if is_adapter(policy):
            adapted: Any = PeftModel.from_pretrained(model, policy, is_trainable=True)
        else:
            adapted = get_peft_model(model, _build_lora_config(settings.lora_settings, model, base))
    _cast_trainable_to_fp32(adapted)
    return adapted


def _build_lora_config(lora_settings: LoraSettings, model: Any, base: Path) -> Any:
    from peft import LoraConfig, TaskType
    from transformers.pytorch_utils import Conv1D

    head = model.get_output_embeddings()
    layers: dict[str, nn.Module] = dict(model.named_modules())
    linear = {name: m for name, m in layers.items() if isinstance(m, nn.Linear | Conv1D) and m is not head}
    return LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        base_model_name_or_path=str(base),
        r=lora_settings.rank,
        lora_alpha=lora_settings.alpha,  # type: ignore[arg-type]  # peft accepts any number
        lora_dropout=0.0,
        target_modules=list(lora_settings.target_modules) or sorted({name.rpartition(".")[2] for name in linear}),
        fan_in_fan_out=any(isinstance(layer, Conv1D) for layer in linear.values()),
    )


def _enable_gradient_checkpointing(model: Any) -> None:
    """Enable gradient checkpointing. transformers 6 has only the new method, 5.0 only the old one."""
    newer = getattr(model, "activation_checkpointing_enable", None)
    (newer or model.gradient_checkpointing_enable)({"use_reentrant": False})


def _cast_trainable_to_fp32(model: nn.Module) -> None:
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()


def _disable_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "attn_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def trainable_parameters(module: nn.Module) -> Mapping[str, nn.Parameter]:
    """Return the weights that have a gradient, by name. Tied weights appear once."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
