"""A learner's policy as Hugging Face files: full weights, or a PEFT adapter that says what it was trained over.

The only home of what such a folder holds. Tokenizer, template and configuration are the very files of the policy that
training began with, so that their hashes stay; weights are stored in the precision that they had there.
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
from offing_engine.folder import ADAPTER, BASE_NOTE, read_json, weights_sha256
from offing_trainer.learner.atomic import put_whole
from offing_trainer.learner.policy import Opened
from offing_trainer.learner.ranks import Ranks, gathered

ADAPTER_WEIGHTS = "adapter_model.safetensors"

BESIDE = {".json", ".jinja", ".txt", ".model"}
"""Ends of names of files that go along: tokenizer, template, configuration."""

NOT_BESIDE = {ADAPTER, BASE_NOTE, "model.safetensors.index.json", "pytorch_model.bin.index.json"}


def export(folder: Path, kind: Literal["full", "lora"], opened: Opened, network: nn.Module, ranks: Ranks) -> None:
    """Every process takes part; the first one writes."""
    if kind == "lora" and opened.adapted is None:
        raise InvalidInput("kind", "all weights were moved, there is no adapter", "Export it as full.")
    weights = _adapter(opened) if kind == "lora" else _merged(opened)
    if ranks.index == 0:
        with put_whole(folder, replacing=False) as new:
            _go_along(opened.base, new)
            if kind == "lora":
                _write_adapter(new, weights, opened)
            else:
                _write_full(new, weights, opened)
    ranks.wait()


def _go_along(base: Path, new: Path) -> None:
    for path in sorted(base.iterdir()):
        if path.is_file() and path.suffix in BESIDE and path.name not in NOT_BESIDE:
            shutil.copyfile(path, new / path.name)


def _write_full(new: Path, weights: dict[str, Tensor], opened: Opened) -> None:
    configuration = (new / "config.json").read_bytes()
    kept = _stored_dtypes(opened.base)
    weights = {name: weight.to(kept.get(name, weight.dtype)) for name, weight in weights.items()}
    opened.model.save_pretrained(new, state_dict=weights)
    (new / "config.json").write_bytes(configuration)


def _stored_dtypes(base: Path) -> dict[str, torch.dtype]:
    found: dict[str, torch.dtype] = {}
    for path in sorted(base.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            found |= {name: file.get_slice(name)[:0].dtype for name in file.keys()}  # noqa: SIM118
    return found


def _write_adapter(new: Path, weights: dict[str, Tensor], opened: Opened) -> None:
    """Lists in the configuration are sorted: peft keeps them in sets, whose order is another in every process."""
    (new / "config.json").unlink(missing_ok=True)
    save_file(weights, new / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    opened.adapted.peft_config["default"].save_pretrained(new)
    about = read_json(new / ADAPTER)
    for name, value in about.items():
        if isinstance(value, list):
            about[name] = sorted(value)
    about["base_model_name_or_path"] = opened.base.name
    about["inference_mode"] = True
    (new / ADAPTER).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    (new / BASE_NOTE).write_bytes(orjson.dumps({"weights_sha256": weights_sha256(opened.base)}))


def _adapter(opened: Opened) -> dict[str, Tensor]:
    from peft import get_peft_model_state_dict

    return {name: _on_cpu(weight) for name, weight in get_peft_model_state_dict(opened.adapted).items()}


def _merged(opened: Opened) -> dict[str, Tensor]:
    """All weights, on the CPU; an adapter's part added to a copy, so that training goes on with the very same bits."""
    whole: Any = opened.model if opened.adapted is None else copy.deepcopy(opened.adapted).merge_and_unload()
    tied = dict(whole.named_parameters(remove_duplicate=False)).keys() - dict(whole.named_parameters()).keys()
    return {name: _on_cpu(weight) for name, weight in whole.state_dict().items() if name not in tied}


def _on_cpu(tensor: Tensor) -> Tensor:
    return gathered(tensor.detach()).cpu().contiguous().clone()
