"""The learner in torch, with one process or several.

A loss is a function that is called with the forwarded results and returns gradients, which are then
propagated through the model.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from offing.core.errors import Conflict, InvalidInput
from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Floats, Indices, expand_ranges
from offing_trainer.learner import learner_state, policy_export
from offing_trainer.learner.contract import ForwardResult, LossFunction, LossGradients, OptimizerStepResult
from offing_trainer.learner.opened_model import OpenedModel, open_model, trainable_parameters
from offing_trainer.learner.optimizer import Optimizer
from offing_trainer.learner.policy_network import VALUE_READS, PolicyNetwork, check_output_head, to_tensors
from offing_trainer.learner.process_group import ProcessGroup, open_process_group
from offing_trainer.learner.row_layout import (
    NO_POSITION,
    MicroBatch,
    RowLayout,
    build_layout,
    join_rows,
    split_micro_batches,
)
from offing_trainer.learner.settings import LearnerSettings


@dataclass(frozen=True, slots=True)
class ForwardGraph:
    """The autograd tensors of one micro-batch's forward pass."""

    logp: Tensor
    entropy: Tensor
    values: Mapping[str, Tensor]


class LocalLearner:
    """`contract.Learner` on this machine's devices.

    Logprobs and entropies are of the whole distribution at the temperature that a turn was sampled at.
    `top_p` and `top_k` are not applied, so turns that were sampled with them do not match the engine's
    recorded logprobs.
    """

    def __init__(self, opened_model: OpenedModel, settings: LearnerSettings, process_group: ProcessGroup) -> None:
        self._opened, self._settings, self._ranks = opened_model, settings, process_group
        short = settings.precision == "bf16"
        self._network = PolicyNetwork(opened_model, settings.critic, process_group.device, short)
        check_output_head(self._network, process_group.device)
        process_group.shard(self._network, getattr(opened_model.model, "_no_split_modules", None) or ())
        self._optimizer = Optimizer(trainable_parameters(self._network), settings)
        self._pending = False

    @property
    def optimizer_steps(self) -> int:
        """Return the number of optimizer steps that changed weights."""
        return self._optimizer.steps

    def forward(self, rows: Sequence[TrainingRow]) -> ForwardResult:
        """Forward rows without gradients. Results are in the order of `rows`."""
        layouts = [build_layout(row) for row in rows]
        results: list[tuple[MicroBatch, ForwardResult]] = []
        with torch.no_grad():
            for parts in self._iter_rounds(layouts):
                graph = self._forward_own(parts)
                results += zip(parts, self._gather_results(parts, graph), strict=True)
        return _restore_row_order(layouts, results, self._network.columns)

    def without_adapter(self) -> "BaseWeights | None":
        """Return the weights under the adapter as a reference policy, without a copy.

        `None` means that there is no adapter.
        """
        return None if self._opened.peft_model is None else BaseWeights(self, self._opened)

    def forward_backward(self, rows: Sequence[TrainingRow], loss: LossFunction) -> float:
        """Accumulate the gradient and return the sum of the micro-batches' losses.

        With several processes, each forwards its part of the rows, and all of them call `loss` for every
        micro-batch in the same order. Its accumulated values are therefore the same everywhere.
        """
        value = 0.0
        for parts in self._iter_rounds([build_layout(row) for row in rows]):
            graph = self._forward_own(parts)
            gradients = [
                loss(part.row_indices, result)
                for part, result in zip(parts, self._gather_results(parts, graph), strict=True)
            ]
            value += sum(slope.value for slope in gradients)
            if any(_is_nonzero(slope) for slope in gradients):
                self._backward(graph, parts, gradients)
                self._pending = True
        return value

    def optim_step(self) -> OptimizerStepResult:
        if self._pending and self._ranks.world_size > 1 and not self._ranks.is_sharded:
            self._sum_gradients()
        self._pending = False
        return self._optimizer.step()

    def save(self, folder: Path, moments_of: Path | None = None) -> None:
        """Save the state atomically. Raises Conflict between forward_backward and optim_step."""
        if self._pending:
            raise Conflict("The accumulated gradient has not been applied.", "Save after optim_step.")
        learner_state.save_state(folder, self._network, self._optimizer, self._opened, self._ranks, moments_of)

    def load(self, folder: Path) -> None:
        """Load a state. Raises InvalidInput if it belongs to other weights or is of another kind."""
        learner_state.load_state(folder, self._network, self._optimizer, self._opened, self._ranks)
        self._pending = False

    def export_policy(self, folder: Path, kind: Literal["full", "lora"]) -> None:
        """Export a folder that the policy engine can serve.

        Raises Conflict if it exists, and InvalidInput if the learner cannot export this kind.
        """
        policy_export.export_policy(folder, kind, self._opened, self._network, self._ranks)

    def _iter_rounds(self, rows: Sequence[RowLayout]) -> Iterator[list[MicroBatch]]:
        """Yield lists of micro-batches that are forwarded at the same time, one per process."""
        packing, count = self._settings.packing, self._ranks.world_size
        parts = split_micro_batches(rows, self._settings.max_tokens_per_micro_batch, packing=packing)
        for start in range(0, len(parts), count):
            yield [join_rows(rows, which, packing=packing) for which in parts[start : start + count]]

    def _forward_own(self, micro_batches: Sequence[MicroBatch]) -> ForwardGraph | None:
        """Forward this process's micro-batch. Returns `None` if there is none for it.

        With sharded weights all processes are needed, so such a process forwards the first one.
        """
        if self._ranks.rank >= len(micro_batches) and not self._ranks.is_sharded:
            return None
        part = micro_batches[self._ranks.rank % len(micro_batches)]
        return ForwardGraph(*self._network(to_tensors(part, self._network.columns, self._ranks.device)))

    def _gather_results(self, micro_batches: Sequence[MicroBatch], own: ForwardGraph | None) -> list[ForwardResult]:
        """Return the results of all processes in this round."""
        columns, index = self._network.columns, self._ranks.rank
        if self._ranks.world_size == 1:
            assert own is not None
            return [_unflatten_result(micro_batches[0], _flatten_result(own, columns), columns)]
        sizes = [_flat_size(part, columns) for part in micro_batches]
        flat = torch.zeros(sum(sizes), dtype=torch.float64, device=self._ranks.device)
        if own is not None and index < len(micro_batches):
            start = sum(sizes[:index])
            flat[start : start + sizes[index]] = torch.from_numpy(_flatten_result(own, columns)).to(flat.device)
        parts = np.split(self._ranks.all_reduce(flat).cpu().numpy(), np.cumsum(sizes)[:-1])
        return [_unflatten_result(part, numbers, columns) for part, numbers in zip(micro_batches, parts, strict=True)]

    def _backward(
        self, graph: ForwardGraph | None, micro_batches: Sequence[MicroBatch], gradients: Sequence[LossGradients]
    ) -> None:
        if graph is None:
            return
        own = self._ranks.rank < len(micro_batches)
        part, slope = (
            (micro_batches[self._ranks.rank], gradients[self._ranks.rank]) if own else (micro_batches[0], gradients[0])
        )
        scale = (
            (self._ranks.world_size if self._ranks.is_sharded else 1) if own else 0
        )  # sharded gradients are averaged
        pairs = _gradient_pairs(graph, part, slope)
        if pairs:
            grads = [torch.from_numpy(by * scale).to(to.device, to.dtype) for to, by in pairs]
            torch.autograd.backward([to for to, _ in pairs], grads)

    def _sum_gradients(self) -> None:
        weights = list(trainable_parameters(self._network).values())
        flat = torch.cat([(torch.zeros_like(w) if w.grad is None else w.grad).flatten() for w in weights])
        for weight, grad in zip(weights, self._ranks.all_reduce(flat).split([w.numel() for w in weights]), strict=True):
            weight.grad = grad.view_as(weight)


class BaseWeights:
    """The weights under a learner's adapter, forwarded with the adapter switched off."""

    def __init__(self, learner: LocalLearner, opened_model: OpenedModel) -> None:
        self._learner, self._opened = learner, opened_model

    @property
    def folder(self) -> Path:
        """Return the folder of the weights."""
        return self._opened.base_folder

    def forward(self, rows: Sequence[TrainingRow]) -> ForwardResult:
        with self._opened.peft_model.disable_adapter():
            return self._learner.forward(rows)


def open_learner(policy: Path, settings: LearnerSettings, *, base: Path | None = None) -> LocalLearner:
    """Open a learner for the weights in `policy`, a Hugging Face folder or an adapter over `base`.

    Raises InvalidInput. Its optimizer allocates no memory before the first step, so a reference policy
    only costs its weights.
    """
    if settings.cpu_threads is not None:
        torch.set_num_threads(settings.cpu_threads)
    ranks = open_process_group(settings)
    opened = open_model(policy, base, settings)
    if settings.packing and not opened.can_pack:
        raise InvalidInput("packing", f"{policy} has layers with state other than attention", "Turn packing off.")
    return LocalLearner(opened, settings, ranks)


def _is_nonzero(gradients: LossGradients) -> bool:
    arrays = (gradients.logprob_grads, gradients.entropy_grads, *gradients.value_grads.values())
    return any(by is not None and bool(by.any()) for by in arrays)  # NaN counts as nonzero


def _gradient_pairs(
    graph: ForwardGraph, micro_batch: MicroBatch, gradients: LossGradients
) -> list[tuple[Tensor, Floats]]:
    """Return pairs of a forwarded tensor and its gradient."""
    pairs = [(graph.logp, gradients.logprob_grads)] if len(gradients.logprob_grads) else []
    if gradients.entropy_grads is not None:
        pairs.append((graph.entropy, gradients.entropy_grads))
    pairs += [
        (graph.values[name], by[_turns_with_value(micro_batch, name)]) for name, by in gradients.value_grads.items()
    ]
    wrong = next((f"{by.shape} for {tuple(to.shape)}" for to, by in pairs if by.shape != tuple(to.shape)), None)
    if wrong:
        raise ValueError(f"the loss returned gradients whose shape differs from the outputs: {wrong}")
    return [(to, by) for to, by in pairs if to.requires_grad]


def _turns_with_value(micro_batch: MicroBatch, column: str) -> Indices:
    """Return the turns of the micro-batch at which this column is read."""
    return np.flatnonzero(getattr(micro_batch, VALUE_READS[column][1]) != NO_POSITION)


def _flatten_result(graph: ForwardGraph, columns: Sequence[str]) -> Floats:
    parts = [graph.logp, graph.entropy, *(graph.values[name] for name in columns)]
    return torch.cat([part.detach() for part in parts]).double().cpu().numpy()


def _flat_size(micro_batch: MicroBatch, columns: Sequence[str]) -> int:
    return 2 * len(micro_batch.read_positions) + sum(len(_turns_with_value(micro_batch, name)) for name in columns)


def _unflatten_result(micro_batch: MicroBatch, flat: Floats, columns: Sequence[str]) -> ForwardResult:
    """Split the flat array of `_flatten_result`."""
    count, start, values = len(micro_batch.read_positions), 2 * len(micro_batch.read_positions), dict[str, Floats]()
    for name in columns:
        turns = _turns_with_value(micro_batch, name)
        values[name] = np.full(len(micro_batch.turn_start), np.nan)
        values[name][turns] = flat[start : start + len(turns)]
        start += len(turns)
    return ForwardResult(flat[:count], flat[count : 2 * count], values)


def _restore_row_order(
    rows: Sequence[RowLayout], results: Sequence[tuple[MicroBatch, ForwardResult]], columns: Sequence[str]
) -> ForwardResult:
    """Join the results of micro-batches in the order of `rows`."""
    order = np.concatenate([part.row_indices for part, _ in results]) if results else np.empty(0, np.int64)
    tokens = _item_positions(order, np.array([len(row.read_positions) for row in rows], np.int64))
    turns = _item_positions(order, np.array([len(row.turn_start) for row in rows], np.int64))
    return ForwardResult(
        _concatenate([seen.logprobs for _, seen in results])[tokens],
        _concatenate([seen.entropy for _, seen in results])[tokens],
        {name: _concatenate([seen.values[name] for _, seen in results])[turns] for name in columns},
    )


def _item_positions(order: Indices, counts: Indices) -> Indices:
    """Return where the items of row 0, row 1, ... are when the rows are in this `order`."""
    ends = np.cumsum(counts[order])
    starts = np.empty(len(counts), np.int64)
    starts[order] = ends - counts[order]
    return expand_ranges(starts, starts + counts)


def _concatenate(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate(arrays) if arrays else np.empty(0)
