"""A learner's state on disk: weights that are moved, the optimiser's moments, its step, torch's random state.

The only home of that folder's layout: `state.json`, `weights.safetensors`, `moments.safetensors`. Weights that
stay as they are lie elsewhere; their hash says which they were.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing_engine.folder import weights_sha256
from offing_trainer.learner.atomic import put_whole, settle
from offing_trainer.learner.optimiser import Optimiser
from offing_trainer.learner.policy import Opened, moved
from offing_trainer.learner.ranks import Ranks, gathered, laid_like

STATE, WEIGHTS, MOMENTS = "state.json", "weights.safetensors", "moments.safetensors"
FORMAT = 1
RANDOM, RANDOM_CUDA = "random.cpu", "random.cuda"


def save(folder: Path, network: nn.Module, optimiser: Optimiser, opened: Opened, ranks: Ranks) -> None:
    """Every process takes part; the first one writes."""
    weights = {name: _on_cpu(weight) for name, weight in moved(network).items()}
    moments = _moments(network, optimiser)
    if ranks.index == 0:
        with put_whole(folder, replacing=True) as new:
            save_file(weights, new / WEIGHTS)
            save_file(moments, new / MOMENTS)
            (new / STATE).write_bytes(orjson.dumps(_about(optimiser, opened), option=orjson.OPT_INDENT_2))
    ranks.wait()


def load(folder: Path, network: nn.Module, optimiser: Optimiser, opened: Opened, ranks: Ranks) -> None:
    """Raises InvalidInput when the state belongs to other weights."""
    if ranks.index == 0:
        settle(folder)
    ranks.wait()
    about = _checked(folder, opened)
    weights, wanted = load_file(folder / WEIGHTS), moved(network)
    if {n: tuple(w.shape) for n, w in weights.items()} != {n: tuple(w.shape) for n, w in wanted.items()}:
        raise InvalidInput(
            "folder", f"{folder} holds other weights than are moved here", "Use the settings of its run."
        )
    with torch.no_grad():
        for name, weight in wanted.items():
            weight.copy_(laid_like(weights[name], weight))
    _put_moments(load_file(folder / MOMENTS), network, optimiser)
    optimiser.steps = int(about["steps"])


def _about(optimiser: Optimiser, opened: Opened) -> dict[str, Any]:
    base = weights_sha256(opened.base)
    return {"format": FORMAT, "kind": opened.kind, "base_sha256": base, "steps": optimiser.steps}


def _checked(folder: Path, opened: Opened) -> dict[str, Any]:
    if not (folder / STATE).is_file():
        raise InvalidInput("folder", f"{folder} holds no learner's state", "Name a folder that a learner saved.")
    about: dict[str, Any] = orjson.loads((folder / STATE).read_bytes())
    if about["format"] != FORMAT or about["kind"] != opened.kind:
        raise InvalidInput("folder", f"{folder} is of kind {about['kind']}", f"This learner is of kind {opened.kind}.")
    if about["base_sha256"] != weights_sha256(opened.base):
        raise InvalidInput("folder", f"{folder} began with other weights", f"Open the policy {about['base_sha256']}.")
    return about


def _moments(network: nn.Module, optimiser: Optimiser) -> dict[str, Tensor]:
    """`NAME:exp_avg` and the like, of weights that were moved at least once, and random states."""
    found: dict[str, Tensor] = {RANDOM: torch.get_rng_state()}
    if torch.cuda.is_available():
        found[RANDOM_CUDA] = torch.cuda.get_rng_state()
    for name, weight in moved(network).items():
        for what, moment in optimiser.adamw.state.get(weight, {}).items():
            found[f"{name}:{what}"] = _on_cpu(moment)
    return found


def _put_moments(found: Mapping[str, Tensor], network: nn.Module, optimiser: Optimiser) -> None:
    torch.set_rng_state(found[RANDOM])
    if RANDOM_CUDA in found and torch.cuda.is_available():
        torch.cuda.set_rng_state(found[RANDOM_CUDA])
    optimiser.adamw.state.clear()
    optimiser.adamw.zero_grad()
    weights = moved(network)
    for key, moment in found.items():
        name, _, what = key.rpartition(":")
        if name:
            weight = weights[name]
            here = moment.to(weight.device) if moment.dim() == 0 else laid_like(moment, weight)
            optimiser.adamw.state[weight][what] = here


def _on_cpu(tensor: Tensor) -> Tensor:
    return gathered(tensor.detach()).cpu().contiguous().clone()
