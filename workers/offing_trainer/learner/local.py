"""The learner on torch: rows in, numbers out, weights moved; one process or several.

The only home of the order of a forward and a way back. It knows no algorithm: a loss is a function that it calls with
what was forwarded and that gives derivatives, which are then carried back through the weights.
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
from offing.core.rows import TrainRow
from offing_trainer.batch import Floats, Places, spread
from offing_trainer.learner import export, stored
from offing_trainer.learner.contract import Derivatives, Forwarded, LossOf, Stepped
from offing_trainer.learner.layout import NOWHERE, Laid, Part, cut, laid, together
from offing_trainer.learner.network import READINGS, Network, given, try_head
from offing_trainer.learner.optimiser import Optimiser
from offing_trainer.learner.policy import Opened, moved, opened
from offing_trainer.learner.ranks import Ranks, ranks_of
from offing_trainer.learner.settings import Settings


@dataclass(frozen=True, slots=True)
class Graph:
    """What one part's forward left for the way back."""

    logp: Tensor
    entropy: Tensor
    values: Mapping[str, Tensor]


class LocalLearner:
    """`contract.Learner` on this machine's processors.

    Log-probabilities and entropies are of the whole distribution at the temperature that a turn was sampled at; a
    turn's top_p and top_k are not applied, so turns that were sampled with them agree with no engine's record.
    """

    def __init__(self, opened: Opened, settings: Settings, ranks: Ranks) -> None:
        self._opened, self._settings, self._ranks = opened, settings, ranks
        short = settings.precision == "bf16"
        self._network = Network(opened, settings.critic, ranks.device, short)
        try_head(self._network, ranks.device)
        ranks.spread(self._network, getattr(opened.model, "_no_split_modules", None) or ())
        self._optimiser = Optimiser(moved(self._network), settings)
        self._pending = False

    @property
    def steps(self) -> int:
        """Optimiser steps that moved weights."""
        return self._optimiser.steps

    def forward(self, rows: Sequence[TrainRow]) -> Forwarded:
        """In the order of `rows`, whatever shared a micro-batch."""
        laid_rows = [laid(row) for row in rows]
        found: list[tuple[Part, Forwarded]] = []
        with torch.no_grad():
            for parts in self._rounds(laid_rows):
                graph = self._mine(parts)
                found += zip(parts, self._shared(parts, graph), strict=True)
        return _in_order(laid_rows, found, self._network.columns)

    def forward_backward(self, rows: Sequence[TrainRow], loss: LossOf) -> float:
        """Adds to the gradient; the sum of the parts' values.

        With several processes each forwards its share, and every one of them calls `loss` for every part in the same
        order, so that whatever `loss` adds up is the same everywhere.
        """
        value = 0.0
        for parts in self._rounds([laid(row) for row in rows]):
            graph = self._mine(parts)
            slopes = [loss(part.rows, seen) for part, seen in zip(parts, self._shared(parts, graph), strict=True)]
            value += sum(slope.value for slope in slopes)
            if any(_matters(slope) for slope in slopes):
                self._back(graph, parts, slopes)
                self._pending = True
        return value

    def optim_step(self) -> Stepped:
        if self._pending and self._ranks.count > 1 and not self._ranks.spreads:
            self._sum_gradients()
        self._pending = False
        return self._optimiser.step()

    def save(self, folder: Path) -> None:
        """Whole or not at all; what was there before stays until then. Raises Conflict between backward and step."""
        if self._pending:
            raise Conflict("A gradient is waiting to be used.", "Save after optim_step.")
        stored.save(folder, self._network, self._optimiser, self._opened, self._ranks)

    def load(self, folder: Path) -> None:
        """Raises InvalidInput for a state of other weights or of another kind."""
        stored.load(folder, self._network, self._optimiser, self._opened, self._ranks)
        self._pending = False

    def export_policy(self, folder: Path, kind: Literal["full", "lora"]) -> None:
        """A folder that the policy engine serves. Raises Conflict when it exists, InvalidInput for a kind it is not."""
        export.export(folder, kind, self._opened, self._network, self._ranks)

    def _rounds(self, rows: Sequence[Laid]) -> Iterator[list[Part]]:
        """Parts that are forwarded at the same time, one a process."""
        packing, count = self._settings.packing, self._ranks.count
        parts = cut(rows, self._settings.tokens_per_microbatch, packing=packing)
        for start in range(0, len(parts), count):
            yield [together(rows, which, packing=packing) for which in parts[start : start + count]]

    def _mine(self, parts: Sequence[Part]) -> Graph | None:
        """None: the round has no part for this process. Where all are needed at once, it goes along with the first."""
        if self._ranks.index >= len(parts) and not self._ranks.spreads:
            return None
        part = parts[self._ranks.index % len(parts)]
        return Graph(*self._network(given(part, self._network.columns, self._ranks.device)))

    def _shared(self, parts: Sequence[Part], mine: Graph | None) -> list[Forwarded]:
        """What every process forwarded in this round, for all of them."""
        columns, index = self._network.columns, self._ranks.index
        if self._ranks.count == 1:
            assert mine is not None
            return [_seen(parts[0], _numbers(mine, columns), columns)]
        sizes = [_size(part, columns) for part in parts]
        flat = torch.zeros(sum(sizes), dtype=torch.float64, device=self._ranks.device)
        if mine is not None and index < len(parts):
            start = sum(sizes[:index])
            flat[start : start + sizes[index]] = torch.from_numpy(_numbers(mine, columns)).to(flat.device)
        found = np.split(self._ranks.summed(flat).cpu().numpy(), np.cumsum(sizes)[:-1])
        return [_seen(part, numbers, columns) for part, numbers in zip(parts, found, strict=True)]

    def _back(self, graph: Graph | None, parts: Sequence[Part], slopes: Sequence[Derivatives]) -> None:
        if graph is None:
            return
        own = self._ranks.index < len(parts)
        part, slope = (parts[self._ranks.index], slopes[self._ranks.index]) if own else (parts[0], slopes[0])
        scale = (self._ranks.count if self._ranks.spreads else 1) if own else 0  # sharded gradients are averaged
        pairs = _pairs(graph, part, slope)
        if pairs:
            grads = [torch.from_numpy(by * scale).to(to.device, to.dtype) for to, by in pairs]
            torch.autograd.backward([to for to, _ in pairs], grads)

    def _sum_gradients(self) -> None:
        weights = list(moved(self._network).values())
        flat = torch.cat([(torch.zeros_like(w) if w.grad is None else w.grad).flatten() for w in weights])
        for weight, grad in zip(weights, self._ranks.summed(flat).split([w.numel() for w in weights]), strict=True):
            weight.grad = grad.view_as(weight)


def open_learner(policy: Path, settings: Settings, *, base: Path | None = None) -> LocalLearner:
    """A learner of the weights in `policy`, a Hugging Face folder or an adapter's over `base`. Raises InvalidInput.

    Its optimiser takes no memory before the first step, so that one of a reference policy costs its weights.
    """
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    ranks = ranks_of(settings)
    found = opened(policy, base, settings)
    if settings.packing and not found.packs:
        raise InvalidInput("packing", f"{policy} has layers that carry more than attention", "Leave packing off.")
    return LocalLearner(found, settings, ranks)


def _matters(slope: Derivatives) -> bool:
    given = (slope.dlogp, slope.dentropy, *slope.dvalues.values())
    return any(by is not None and bool(by.any()) for by in given)  # not a number is not 0 either


def _pairs(graph: Graph, part: Part, slope: Derivatives) -> list[tuple[Tensor, Floats]]:
    """What was forwarded, with the derivative by it."""
    pairs = [(graph.logp, slope.dlogp)] if len(slope.dlogp) else []
    if slope.dentropy is not None:
        pairs.append((graph.entropy, slope.dentropy))
    pairs += [(graph.values[name], by[_there(part, name)]) for name, by in slope.dvalues.items()]
    wrong = next((f"{by.shape} for {tuple(to.shape)}" for to, by in pairs if by.shape != tuple(to.shape)), None)
    if wrong:
        raise ValueError(f"a loss gave derivatives of another shape than what was forwarded: {wrong}")
    return [(to, by) for to, by in pairs if to.requires_grad]


def _there(part: Part, column: str) -> Places:
    """Turns of the part whose value of this column is read."""
    return np.flatnonzero(getattr(part, READINGS[column][1]) != NOWHERE)


def _numbers(graph: Graph, columns: Sequence[str]) -> Floats:
    parts = [graph.logp, graph.entropy, *(graph.values[name] for name in columns)]
    return torch.cat([part.detach() for part in parts]).double().cpu().numpy()


def _size(part: Part, columns: Sequence[str]) -> int:
    return 2 * len(part.at) + sum(len(_there(part, name)) for name in columns)


def _seen(part: Part, numbers: Floats, columns: Sequence[str]) -> Forwarded:
    """`_numbers` taken apart."""
    count, start, values = len(part.at), 2 * len(part.at), dict[str, Floats]()
    for name in columns:
        there = _there(part, name)
        values[name] = np.full(len(part.before), np.nan)
        values[name][there] = numbers[start : start + len(there)]
        start += len(there)
    return Forwarded(numbers[:count], numbers[count : 2 * count], values)


def _in_order(rows: Sequence[Laid], found: Sequence[tuple[Part, Forwarded]], columns: Sequence[str]) -> Forwarded:
    """Parts put back into the order of `rows`."""
    order = np.concatenate([part.rows for part, _ in found]) if found else np.empty(0, np.int64)
    tokens = _put_back(order, np.array([len(row.at) for row in rows], np.int64))
    turns = _put_back(order, np.array([len(row.before) for row in rows], np.int64))
    return Forwarded(
        _joined([seen.logp for _, seen in found])[tokens],
        _joined([seen.entropy for _, seen in found])[tokens],
        {name: _joined([seen.values[name] for _, seen in found])[turns] for name in columns},
    )


def _put_back(order: Places, counts: Places) -> Places:
    """Where each of the items of row 0, row 1, … is when rows lie in `order`."""
    ends = np.cumsum(counts[order])
    starts = np.empty(len(counts), np.int64)
    starts[order] = ends - counts[order]
    return spread(starts, starts + counts)


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)
