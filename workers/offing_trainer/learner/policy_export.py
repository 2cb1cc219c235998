"""Export of a learner's policy as Hugging Face files: full weights, or a PEFT adapter.

Tokenizer, template and configuration are copied from the initial policy, so their hashes stay the
same. Weights are stored in the precision that they had there. An adapter names the weights that it
was trained over.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers and peft carry partial types.

import copy
import shutil
from pathlib import Path
from typing import Any, Literal

import orjson
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing.models.policy_folder import ADAPTER_FILE, BASE_FILE, hash_weights, read_json
from offing_trainer.learner.atomic_folder import open_atomic_folder
from offing_trainer.learner.opened_model import OpenedModel
from offing_trainer.learner.process_group import ProcessGroup, gather_tensor

ADAPTER_WEIGHTS = "adapter_model.safetensors"

COPIED_SUFFIXES = {".json", ".jinja", ".txt", ".model"}
"""Suffixes of the files that are copied: tokenizer, template and configuration."""

EXCLUDED_FILES = {ADAPTER_FILE, BASE_FILE, "model.safetensors.index.json", "pytorch_model.bin.index.json"}


def export_policy(
    folder: Path,
    kind: Literal["full", "lora"],
    opened_model: OpenedModel,
    network: nn.Module,
    process_group: ProcessGroup,
) -> None:
    """Export the policy. Every process takes part; the first one writes."""
    if kind == "lora" and opened_model.peft_model is None:
        raise InvalidInput("kind", "all weights were trained, so there is no adapter", "Use kind full.")
    weights = _adapter_weights(opened_model) if kind == "lora" else _merged_weights(opened_model)
    if process_group.rank == 0:
        with open_atomic_folder(folder, replace=False) as new:
            _copy_policy_files(opened_model.base_folder, new)
            if kind == "lora":
                _write_adapter(new, weights, opened_model)
            else:
                _write_full(new, weights, opened_model)
    process_group.barrier()


def _copy_policy_files(base: Path, new: Path) -> None:
    for path in sorted(base.iterdir()):
        if path.is_file() and path.suffix in COPIED_SUFFIXES and path.name not in EXCLUDED_FILES:
            shutil.copyfile(path, new / path.name)


def _write_full(new: Path, weights: dict[str, Tensor], opened_model: OpenedModel) -> None:
    configuration = (new / "config.json").read_bytes()
    dtypes = _stored_dtypes(opened_model.base_folder)
    weights = {name: weight.to(dtypes.get(name, weight.dtype)) for name, weight in weights.items()}
    opened_model.model.save_pretrained(new, state_dict=weights)
    (new / "config.json").write_bytes(configuration)


def _stored_dtypes(base: Path) -> dict[str, torch.dtype]:
    dtypes: dict[str, torch.dtype] = {}
    for path in sorted(base.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            dtypes |= {name: file.get_slice(name)[:0].dtype for name in file.keys()}  # noqa: SIM118
    return dtypes


def _write_adapter(new: Path, weights: dict[str, Tensor], opened_model: OpenedModel) -> None:
    """Write the adapter with sorted lists in its configuration.

    peft keeps them in sets, whose order differs between processes.
    """
    (new / "config.json").unlink(missing_ok=True)
    save_file(weights, new / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    opened_model.peft_model.peft_config["default"].save_pretrained(new)
    about = read_json(new / ADAPTER_FILE)
    for name, value in about.items():
        if isinstance(value, list):
            about[name] = sorted(value)
    about["base_model_name_or_path"] = opened_model.base_folder.name
    about["inference_mode"] = True
    (new / ADAPTER_FILE).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    (new / BASE_FILE).write_bytes(orjson.dumps({"weights_sha256": hash_weights(opened_model.base_folder)}))


def _adapter_weights(opened_model: OpenedModel) -> dict[str, Tensor]:
    from peft import get_peft_model_state_dict

    return {name: _to_cpu(weight) for name, weight in get_peft_model_state_dict(opened_model.peft_model).items()}


def _merged_weights(opened_model: OpenedModel) -> dict[str, Tensor]:
    """Return all weights on the CPU. An adapter is merged into a copy, so that training is not affected."""
    merged: Any = (
        opened_model.model
        if opened_model.peft_model is None
        else copy.deepcopy(opened_model.peft_model).merge_and_unload()
    )
    tied = dict(merged.named_parameters(remove_duplicate=False)).keys() - dict(merged.named_parameters()).keys()
    return {name: _to_cpu(weight) for name, weight in merged.state_dict().items() if name not in tied}


def _to_cpu(tensor: Tensor) -> Tensor:
    return gather_tensor(tensor.detach()).cpu().contiguous().clone()
