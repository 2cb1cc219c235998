"""The model's forward pass: hidden states, logprobs of trained tokens, and critic values.

The output head is applied separately from the decoder. When the learner is opened, its result is
compared with the model's own logits.
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
from offing_trainer.learner.opened_model import OpenedModel
from offing_trainer.learner.row_layout import NO_POSITION, MicroBatch
from offing_trainer.learner.settings import CriticSettings
from offing_trainer.learner.token_logprobs import compute_token_logprobs

VALUE_READS: Mapping[str, tuple[str, str]] = {
    "value": ("value", "turn_start"),
    "value_high": ("value_high", "turn_start"),
    "value_switch": ("value_switch", "turn_start"),
    "value_low": ("value_low", "decision_end"),
    "value_keep": ("value_low", "turn_start"),
}
"""Head and field of `MicroBatch` with the read positions, by value column.
Before the policy's tokens of a turn, the subgoal in the context is the previous one.
"""


@dataclass(frozen=True, slots=True)
class MicroBatchTensors:
    """A micro-batch as tensors."""

    token_ids: Tensor
    position_ids: Tensor | None
    read_positions: Tensor
    targets: Tensor
    temperature: Tensor | None
    value_positions: Mapping[str, Tensor]
    """Positions at which each value column is read, for the turns that have one."""


def to_tensors(micro_batch: MicroBatch, columns: Sequence[str], device: torch.device) -> MicroBatchTensors:
    def tensor_of(name: str) -> Tensor:
        indices = getattr(micro_batch, VALUE_READS[name][1])
        return torch.from_numpy(indices[indices != NO_POSITION]).to(device)

    return MicroBatchTensors(
        token_ids=torch.from_numpy(micro_batch.token_ids).to(device),
        position_ids=None
        if micro_batch.position_ids is None
        else torch.from_numpy(micro_batch.position_ids).to(device),
        read_positions=torch.from_numpy(micro_batch.read_positions).to(device),
        targets=torch.from_numpy(micro_batch.targets).to(device),
        temperature=None
        if micro_batch.temperature is None
        else torch.from_numpy(micro_batch.temperature).float().to(device),
        value_positions={name: tensor_of(name) for name in columns},
    )


class PolicyNetwork(nn.Module):
    """A policy with an optional critic."""

    def __init__(
        self, opened_model: OpenedModel, critic: CriticSettings | None, device: torch.device, use_bf16: bool
    ) -> None:
        super().__init__()
        self.model: Any = opened_model.model
        self.columns = critic.columns if critic else ()
        self.values = ValueHeads(opened_model.model, critic) if critic else None
        self.short = use_bf16
        self.to(device)

    def forward(self, inputs: MicroBatchTensors) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return logprobs and entropies, (P,), and the values of each column, in float32."""
        with torch.autocast(inputs.token_ids.device.type, torch.bfloat16, enabled=self.short):
            hidden = _hidden_states(self.model.get_decoder(), inputs)
            flat = hidden.flatten(0, 1)
            head, size = self.model.get_output_embeddings(), int(self.model.config.get_text_config().vocab_size)
            logp, nats = compute_token_logprobs(
                lambda h: self._postprocess_logits(head(h)),
                flat[inputs.read_positions],
                inputs.targets,
                inputs.temperature,
                size,
            )
            values = self.values(inputs, flat) if self.values is not None else {}
        return logp, nats, values

    def _postprocess_logits(self, logits: Tensor) -> Tensor:
        """Apply what some model families do to logits after the head.

        Cohere and Granite scale them, Gemma applies a soft cap.
        """
        config = self.model.config.get_text_config()
        logits = (
            logits * (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        )
        bend = getattr(config, "final_logit_softcapping", None)
        return logits if bend is None else torch.tanh(logits / bend) * bend


class ValueHeads(nn.Module):
    """Linear value heads over hidden states. They return 0 until they are trained."""

    def __init__(self, model: Any, critic: CriticSettings) -> None:
        super().__init__()
        self.trunk = copy.deepcopy(model.get_decoder()).float().requires_grad_(True) if critic.trunk == "copy" else None
        self._detached = critic.trunk == "detached"
        names = sorted({VALUE_READS[column][0] for column in critic.columns})
        width = int(model.config.get_text_config().hidden_size)
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in names})
        for weight in self.heads.parameters():
            nn.init.zeros_(weight)

    def forward(self, inputs: MicroBatchTensors, hidden: Tensor) -> dict[str, Tensor]:
        if self.trunk is not None:
            hidden = _hidden_states(self.trunk, inputs).flatten(0, 1)
        elif self._detached:
            hidden = hidden.detach()
        return {
            name: self.heads[VALUE_READS[name][0]](hidden[at]).float()[:, 0]
            for name, at in inputs.value_positions.items()
        }


def _hidden_states(decoder: Any, inputs: MicroBatchTensors) -> Tensor:
    """Return hidden states, [B, L, width].

    No mask is needed: rows are padded at their end only, where causal attention does not look.
    """
    return decoder(input_ids=inputs.token_ids, position_ids=inputs.position_ids, use_cache=False).last_hidden_state


def check_output_head(network: PolicyNetwork, device: torch.device) -> None:
    """Compare the output head with the model's own logits on a few tokens.

    Raises InvalidInput if they differ.
    """
    size = int(network.model.config.get_text_config().vocab_size)
    ids = (torch.arange(12, device=device) * 7 % size)[None]
    at, targets = torch.arange(11, device=device), ids[0, 1:]
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=network.short):
        expected = torch.log_softmax(network.model(input_ids=ids, use_cache=False).logits[0, :-1].float(), -1)
        computed, _, _ = network(MicroBatchTensors(ids, None, at, targets, None, dict.fromkeys(network.columns, at)))
    if not torch.allclose(expected.gather(1, targets[:, None])[:, 0], computed, atol=1e-3, rtol=1e-3):
        kind = type(network.model).__name__
        raise InvalidInput(
            "policy", f"{kind} computes its logits in an unsupported way", "Export the steps and train it elsewhere."
        )
