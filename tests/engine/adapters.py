"""LoRA adapters with random weights, for tests."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def adapter(folder: Path, base: Path, seed: int) -> Path:
    """A LoRA adapter over `base` with weights that matter."""
    from peft import LoraConfig, get_peft_model

    model = AutoModelForCausalLM.from_pretrained(base)
    torch.manual_seed(seed)
    with torch.inference_mode(False):
        peft = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"]))
        for name, weight in peft.named_parameters():
            if "lora_" in name:
                weight.data.normal_(0, 0.2)
        peft.save_pretrained(str(folder))
    return folder
