"""The processes of a learner: one, or several that each forward a part of the rows.

All processes have the same rows and plan the same micro-batches, so only numbers are exchanged.
With one process, which is the default, torch.distributed is not used.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# torch and accelerate carry partial types.

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from offing import environment
from offing.core.errors import InvalidInput
from offing_trainer.learner.settings import LearnerSettings


class ProcessGroup(Protocol):
    """The processes of a learner."""

    @property
    def rank(self) -> int: ...

    @property
    def world_size(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def shard(self, network: nn.Module, layers: Sequence[str]) -> None:
        """Shard the weights over all processes if `sharded` is set. `layers` are classes to gather one by one."""
        ...

    @property
    def is_sharded(self) -> bool:
        """Return whether every forward and backward pass needs all processes."""
        ...

    def all_reduce(self, numbers: Tensor) -> Tensor:
        """Sum the tensor over all processes."""
        ...

    def barrier(self) -> None:
        """Wait until all processes reach this call."""
        ...


class SingleProcess:
    """A single process."""

    def __init__(self, settings: LearnerSettings) -> None:
        if settings.sharded:
            raise InvalidInput(
                "sharded",
                "is true, but there is only one process",
                "Start several processes, for example with `torchrun`.",
            )
        self.rank, self.world_size, self.device = 0, 1, select_device(settings)
        self.is_sharded = False

    def shard(self, network: nn.Module, layers: Sequence[str]) -> None:
        """Do nothing."""

    def all_reduce(self, numbers: Tensor) -> Tensor:
        return numbers

    def barrier(self) -> None:
        """Do nothing."""


class DistributedProcesses:
    """Processes started by `accelerate launch` or `torchrun`, with full weights or FSDP2 shards."""

    def __init__(self, settings: LearnerSettings) -> None:
        from accelerate import Accelerator

        self._accelerator = Accelerator(cpu=select_device(settings).type == "cpu")
        self.rank: int = self._accelerator.process_index
        self.world_size: int = self._accelerator.num_processes
        self.device: torch.device = self._accelerator.device
        self._short = settings.precision == "bf16"
        self.is_sharded = settings.sharded

    def shard(self, network: nn.Module, layers: Sequence[str]) -> None:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        if not self.is_sharded:
            return
        bf16_policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        policy = bf16_policy if self._short else MixedPrecisionPolicy()
        for module in [one for one in network.modules() if type(one).__name__ in layers]:
            fully_shard(module, mp_policy=policy)
        fully_shard(network, mp_policy=policy)

    def all_reduce(self, numbers: Tensor) -> Tensor:
        torch.distributed.all_reduce(numbers)
        return numbers

    def barrier(self) -> None:
        self._accelerator.wait_for_everyone()


def open_process_group(settings: LearnerSettings) -> ProcessGroup:
    """Return the process group that this process was launched in."""
    return (
        DistributedProcesses(settings)
        if int(environment.VARIABLES.get("WORLD_SIZE", "1")) > 1
        else SingleProcess(settings)
    )


def select_device(settings: LearnerSettings) -> torch.device:
    """Select the device. Raises InvalidInput if a GPU is requested and there is none."""
    has_gpu = torch.cuda.is_available()
    if settings.device == "cuda" and not has_gpu:
        raise InvalidInput("device", "PyTorch found no GPU", "Use auto or cpu.")
    return torch.device("cuda" if has_gpu and settings.device != "cpu" else "cpu")


def gather_tensor(tensor: Tensor) -> Tensor:
    """Return the full tensor of which each process may hold a shard. All processes have to call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distribute_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Shard `tensor` over the processes in the same way as `like`."""
    if isinstance(like, DTensor):
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements)
    return tensor.to(like.device)
