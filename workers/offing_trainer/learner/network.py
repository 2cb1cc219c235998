"""One forward of a part: hidden states, the output head where something is trained, the critic where it is asked.

The only home of how a model is called. The head is applied as the model itself does it, which is tried once when the
learner is opened.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing_trainer.learner.layout import NOWHERE, Part
from offing_trainer.learner.policy import Opened
from offing_trainer.learner.scores import scored
from offing_trainer.learner.settings import Critic

READINGS: Mapping[str, tuple[str, str]] = {
    "value": ("value", "before"),
    "value_high": ("value_high", "before"),
    "value_term": ("value_term", "before"),
    "value_low": ("value_low", "decided"),
    "value_kept": ("value_low", "before"),
}
"""Column: the head, and the place of a `Part` where it is read. Before a turn writes, the subgoal in its context is the
old one."""


@dataclass(frozen=True, slots=True)
class Given:
    """A part as tensors."""

    ids: Tensor
    positions: Tensor | None
    at: Tensor
    wanted: Tensor
    heat: Tensor | None
    places: Mapping[str, Tensor]
    """Of the critic's columns: places that are there, turn after turn."""


def given(part: Part, columns: Sequence[str], device: torch.device) -> Given:
    def there(name: str) -> Tensor:
        places = getattr(part, READINGS[name][1])
        return torch.from_numpy(places[places != NOWHERE]).to(device)

    return Given(
        ids=torch.from_numpy(part.ids).to(device),
        positions=None if part.positions is None else torch.from_numpy(part.positions).to(device),
        at=torch.from_numpy(part.at).to(device),
        wanted=torch.from_numpy(part.wanted).to(device),
        heat=None if part.temperature is None else torch.from_numpy(part.temperature).float().to(device),
        places={name: there(name) for name in columns},
    )


class Network(nn.Module):
    """A policy, and a critic where one is wanted."""

    def __init__(self, opened: Opened, critic: Critic | None, device: torch.device, short: bool) -> None:
        super().__init__()
        self.model: Any = opened.model
        self.columns = critic.columns if critic else ()
        self.values = Values(opened.model, critic) if critic else None
        self.short = short
        self.to(device)

    def forward(self, part: Given) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """(P,) log-probability and entropy, and each column's values at its places, in 32 bits."""
        with torch.autocast(part.ids.device.type, torch.bfloat16, enabled=self.short):
            hidden = _hidden(self.model.get_decoder(), part)
            flat = hidden.flatten(0, 1)
            head, size = self.model.get_output_embeddings(), int(self.model.config.get_text_config().vocab_size)
            logp, nats = scored(lambda h: self._finished(head(h)), flat[part.at], part.wanted, part.heat, size)
            values = self.values(part, flat) if self.values is not None else {}
        return logp, nats, values

    def _finished(self, logits: Tensor) -> Tensor:
        """What some families do to logits after the head: Cohere and Granite scale them, Gemma bends them."""
        config = self.model.config.get_text_config()
        logits = (
            logits * (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        )
        bend = getattr(config, "final_logit_softcapping", None)
        return logits if bend is None else torch.tanh(logits / bend) * bend


class Values(nn.Module):
    """Linear heads over hidden states; they say 0 until they are trained."""

    def __init__(self, model: Any, critic: Critic) -> None:
        super().__init__()
        self.trunk = copy.deepcopy(model.get_decoder()).float().requires_grad_(True) if critic.trunk == "copy" else None
        self._detached = critic.trunk == "detached"
        names = sorted({READINGS[column][0] for column in critic.columns})
        width = int(model.config.get_text_config().hidden_size)
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in names})
        for weight in self.heads.parameters():
            nn.init.zeros_(weight)

    def forward(self, part: Given, flat: Tensor) -> dict[str, Tensor]:
        if self.trunk is not None:
            flat = _hidden(self.trunk, part).flatten(0, 1)
        elif self._detached:
            flat = flat.detach()
        return {name: self.heads[READINGS[name][0]](flat[at]).float()[:, 0] for name, at in part.places.items()}


def _hidden(decoder: Any, part: Given) -> Tensor:
    """[B, L, width]. Without a mask: rows are padded behind their end only, where causal attention does not look."""
    return decoder(input_ids=part.ids, position_ids=part.positions, use_cache=False).last_hidden_state


def try_head(network: Network, device: torch.device) -> None:
    """Compares the head with the model's own logits on a few tokens. Raises InvalidInput when they are not the same."""
    size = int(network.model.config.get_text_config().vocab_size)
    ids = (torch.arange(12, device=device) * 7 % size)[None]
    at, wanted = torch.arange(11, device=device), ids[0, 1:]
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=network.short):
        own = torch.log_softmax(network.model(input_ids=ids, use_cache=False).logits[0, :-1].float(), -1)
        ours, _, _ = network(Given(ids, None, at, wanted, None, dict.fromkeys(network.columns, at)))
    if not torch.allclose(own.gather(1, wanted[:, None])[:, 0], ours, atol=1e-3, rtol=1e-3):
        kind = type(network.model).__name__
        raise InvalidInput(
            "policy", f"{kind} makes its logits in a way of its own", "Train it elsewhere, from an export."
        )
