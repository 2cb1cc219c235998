"""Sample completions for many rollouts at once with the policy engine's decode batch, in this process.

Each rollout requests a completion and waits. When all unfinished rollouts wait, one batch answers them. A
completion depends on the seed of its rollout, not on other rollouts in the batch.
"""

# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offing_engine.batch import Completion
    from offing_engine.weights import LoadedPolicy

BESIDE = 64
"""Prompts that are prefilled together. They have similar lengths, so little is padding."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A request of one rollout for its next completion."""

    ids: tuple[int, ...]
    """The prompt."""
    most: int
    """Maximum number of tokens to sample."""
    seed: int
    temperature: float
    """1 samples from the learned distribution. 0 selects the most likely token each time."""


def opened(folder: Path, name: str, *, context: int = 4096) -> "LoadedPolicy":
    """Open a policy folder as the engine serves it. `name` is its NAME@VERSION."""
    import torch

    from offing_engine.weights import load_full_policy

    return load_full_policy(name, folder, torch.device("cpu"), context)


def drawn(policy: "LoadedPolicy", asks: Sequence[SamplingRequest]) -> "list[Completion]":
    """Return one completion per request, in the order of the requests."""
    import torch

    results: list[Any] = [None] * len(asks)
    order = sorted(range(len(asks)), key=lambda n: len(asks[n].ids))
    with torch.inference_mode():
        for start in range(0, len(order), BESIDE):
            _draw(policy, asks, order[start : start + BESIDE], results)
    if broken := next((one for one in results if isinstance(one, BaseException)), None):
        raise broken
    return results


def _draw(policy: "LoadedPolicy", asks: Sequence[SamplingRequest], which: Sequence[int], results: list[Any]) -> None:
    from offing_engine.batch import DecodeBatch, GenerationRequest
    from offing_engine.sampling import SamplingParams

    def work(n: int) -> GenerationRequest:
        ask = asks[n]
        return GenerationRequest(
            ask.ids, ask.most, SamplingParams(ask.temperature), ask.seed, (), partial(results.__setitem__, n)
        )

    batch = DecodeBatch(policy)
    batch.add([work(n) for n in which])
    while len(batch):
        batch.decode_step()


@dataclass(slots=True)
class Table:
    """Collects the requests of the rollouts of one step."""

    policy: "LoadedPolicy"
    _seated: int = 0
    _waiting: "list[tuple[SamplingRequest, asyncio.Future[Completion]]]" = field(
        default_factory=list["tuple[SamplingRequest, asyncio.Future[Completion]]"]
    )

    def sit(self, count: int) -> None:
        """Register this number of rollouts. Requests are answered when all registered rollouts wait."""
        self._seated += count

    def leave(self) -> None:
        """Unregister one rollout that makes no more requests."""
        self._seated -= 1
        self._serve()

    async def completion(self, ask: SamplingRequest) -> "Completion":
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        self._serve()
        return await future

    def _serve(self) -> None:
        if not self._waiting or len(self._waiting) < self._seated:
            return
        waiting, self._waiting = self._waiting, []
        for (_, future), one in zip(waiting, drawn(self.policy, [ask for ask, _ in waiting]), strict=True):
            if not future.done():
                future.set_result(one)
