"""A learner's saved state: trained weights, optimizer moments, step count and random states.

The folder holds `state.json`, `weights.safetensors` and `moments.safetensors`. Frozen weights are
not saved; their hash identifies them. Several states may share one file of moments.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing.models.policy_folder import hash_weights
from offing_trainer.learner.atomic_folder import open_atomic_folder, restore_interrupted
from offing_trainer.learner.opened_model import OpenedModel, trainable_parameters
from offing_trainer.learner.optimizer import Optimizer
from offing_trainer.learner.process_group import ProcessGroup, distribute_like, gather_tensor

STATE_FILE, WEIGHTS_FILE, MOMENTS_FILE = "state.json", "weights.safetensors", "moments.safetensors"
STATE_FORMAT = 1
CPU_RNG_KEY, CUDA_RNG_KEY = "random.cpu", "random.cuda"


def save_state(
    folder: Path,
    network: nn.Module,
    optimizer: Optimizer,
    opened_model: OpenedModel,
    process_group: ProcessGroup,
    moments_of: Path | None = None,
) -> None:
    """Save the state. Every process takes part; the first one writes.

    `moments_of` is an earlier state whose moments and random states belong to this one, too. Its file is linked, not
    written. `None` writes the present ones.
    """
    weights = {name: _to_cpu(weight) for name, weight in trainable_parameters(network).items()}
    moments = _collect_moments(network, optimizer) if moments_of is None else {}
    if process_group.rank == 0:
        with open_atomic_folder(folder, replace=True) as new:
            save_file(weights, new / WEIGHTS_FILE)
            if moments_of is None:
                save_file(moments, new / MOMENTS_FILE)
            else:
                os.link(moments_of / MOMENTS_FILE, new / MOMENTS_FILE)
            (new / STATE_FILE).write_bytes(
                orjson.dumps(_describe_state(optimizer, opened_model), option=orjson.OPT_INDENT_2)
            )
    process_group.barrier()


def load_state(
    folder: Path, network: nn.Module, optimizer: Optimizer, opened_model: OpenedModel, process_group: ProcessGroup
) -> None:
    """Load a state. Raises InvalidInput if it belongs to other weights."""
    if process_group.rank == 0:
        restore_interrupted(folder)
    process_group.barrier()
    about = _read_state(folder, opened_model)
    weights, parameters = load_file(folder / WEIGHTS_FILE), trainable_parameters(network)
    if {n: tuple(w.shape) for n, w in weights.items()} != {n: tuple(w.shape) for n, w in parameters.items()}:
        raise InvalidInput(
            "folder", f"{folder} has other weights than this learner trains", "Use the settings it was saved with."
        )
    with torch.no_grad():
        for name, weight in parameters.items():
            weight.copy_(distribute_like(weights[name], weight))
    _restore_moments(load_file(folder / MOMENTS_FILE), network, optimizer)
    optimizer.steps = int(about["steps"])


def _describe_state(optimizer: Optimizer, opened_model: OpenedModel) -> dict[str, Any]:
    base = hash_weights(opened_model.base_folder)
    return {"format": STATE_FORMAT, "kind": opened_model.kind, "base_sha256": base, "steps": optimizer.steps}


def _read_state(folder: Path, opened_model: OpenedModel) -> dict[str, Any]:
    if not (folder / STATE_FILE).is_file():
        raise InvalidInput(
            "folder", f"{folder} does not contain a learner state", "Use a folder that a learner has saved."
        )
    about: dict[str, Any] = orjson.loads((folder / STATE_FILE).read_bytes())
    if about["format"] != STATE_FORMAT or about["kind"] != opened_model.kind:
        raise InvalidInput(
            "folder", f"{folder} is of kind {about['kind']}", f"This learner is of kind {opened_model.kind}."
        )
    if about["base_sha256"] != hash_weights(opened_model.base_folder):
        raise InvalidInput(
            "folder",
            f"{folder} belongs to other initial weights",
            f"Open the policy with the hash {about['base_sha256']}.",
        )
    return about


def _collect_moments(network: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return `NAME:exp_avg` and similar for all weights that were updated, and the random states."""
    moments: dict[str, Tensor] = {CPU_RNG_KEY: torch.get_rng_state()}
    if torch.cuda.is_available():
        moments[CUDA_RNG_KEY] = torch.cuda.get_rng_state()
    for name, weight in trainable_parameters(network).items():
        for what, moment in optimizer.adamw.state.get(weight, {}).items():
            moments[f"{name}:{what}"] = _to_cpu(moment)
    return moments


def _restore_moments(moments: Mapping[str, Tensor], network: nn.Module, optimizer: Optimizer) -> None:
    torch.set_rng_state(moments[CPU_RNG_KEY])
    if CUDA_RNG_KEY in moments and torch.cuda.is_available():
        torch.cuda.set_rng_state(moments[CUDA_RNG_KEY])
    optimizer.adamw.state.clear()
    optimizer.adamw.zero_grad()
    weights = trainable_parameters(network)
    for key, moment in moments.items():
        name, _, what = key.rpartition(":")
        if name:
            weight = weights[name]
            here = moment.to(weight.device) if moment.dim() == 0 else distribute_like(moment, weight)
            optimizer.adamw.state[weight][what] = here


def _to_cpu(tensor: Tensor) -> Tensor:
    return gather_tensor(tensor.detach()).cpu().contiguous().clone()
