"""One process, or several that were launched together and each forward their share.

The only home of what goes between processes. All of them hold the same rows and plan the same parts, so that only
numbers travel. With one process, which is the default, nothing here touches torch.distributed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch and accelerate carry partial types.

import os
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from offing.core.errors import InvalidInput
from offing_trainer.learner.settings import Settings


class Ranks(Protocol):
    """The processes of a learner."""

    @property
    def index(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def spread(self, network: nn.Module, layers: Sequence[str]) -> None:
        """Lays the weights over all processes where that was asked for; `layers`: classes to gather one at a time."""
        ...

    @property
    def spreads(self) -> bool:
        """Whether every forward and every way back needs all processes at once."""
        ...

    def summed(self, numbers: Tensor) -> Tensor:
        """Over all processes."""
        ...

    def wait(self) -> None:
        """Until all are here."""
        ...


class Alone:
    """One process."""

    def __init__(self, settings: Settings) -> None:
        if settings.sharded:
            raise InvalidInput("sharded", "there is one process", "Start several, with `torchrun` for one.")
        self.index, self.count, self.device = 0, 1, chosen(settings)
        self.spreads = False

    def spread(self, network: nn.Module, layers: Sequence[str]) -> None:
        """Nothing to do."""

    def summed(self, numbers: Tensor) -> Tensor:
        return numbers

    def wait(self) -> None:
        """Nobody to wait for."""


class Launched:
    """Processes that `accelerate launch` or `torchrun` started: each with all weights, or FSDP2's share of them."""

    def __init__(self, settings: Settings) -> None:
        from accelerate import Accelerator

        self._accelerator = Accelerator(cpu=chosen(settings).type == "cpu")
        self.index: int = self._accelerator.process_index
        self.count: int = self._accelerator.num_processes
        self.device: torch.device = self._accelerator.device
        self._short = settings.precision == "bf16"
        self.spreads = settings.sharded

    def spread(self, network: nn.Module, layers: Sequence[str]) -> None:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        if not self.spreads:
            return
        short = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        how = short if self._short else MixedPrecisionPolicy()
        for module in [one for one in network.modules() if type(one).__name__ in layers]:
            fully_shard(module, mp_policy=how)
        fully_shard(network, mp_policy=how)

    def summed(self, numbers: Tensor) -> Tensor:
        torch.distributed.all_reduce(numbers)
        return numbers

    def wait(self) -> None:
        self._accelerator.wait_for_everyone()


def ranks_of(settings: Settings) -> Ranks:
    """As this process was launched."""
    return Launched(settings) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Alone(settings)


def chosen(settings: Settings) -> torch.device:
    """Raises InvalidInput when a GPU is asked for and there is none."""
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        raise InvalidInput("device", "torch sees no GPU here", "Use device auto or cpu.")
    return torch.device("cuda" if there and settings.device != "cpu" else "cpu")


def gathered(tensor: Tensor) -> Tensor:
    """All of a tensor of which each process may hold a part; every process has to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def laid_like(whole: Tensor, like: Tensor) -> Tensor:
    """`whole` spread over the processes as `like` is."""
    if isinstance(like, DTensor):
        return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements)
    return whole.to(like.device)
