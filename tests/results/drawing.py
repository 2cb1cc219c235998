"""Tokens for many rollouts at once, drawn by the policy engine's own batch in this process.

The only home of who waits for whom: a rollout asks and waits, and when all that are still going wait, one batch answers
them. What is drawn depends on a rollout's own seed, not on its neighbours. Knows no flow, no role and no reward; torch
is imported when a policy is opened.
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
    from offing_engine.weights import Policy

BESIDE = 64
"""Prompts that are read together; those of about one length, so that little is padding."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one rollout wants next."""

    ids: tuple[int, ...]
    """The prompt."""
    most: int
    """Tokens to draw at most."""
    seed: int
    temperature: float
    """1: as learned. 0: the likeliest token each time."""


def opened(folder: Path, name: str, *, context: int = 4096) -> "Policy":
    """A policy's folder as the engine serves it; `name` is its NAME@VERSION."""
    import torch

    from offing_engine.weights import load_full

    return load_full(name, folder, torch.device("cpu"), context)


def drawn(policy: "Policy", asks: Sequence[Ask]) -> "list[Completion]":
    """One completion an ask, in their order."""
    import torch

    found: list[Any] = [None] * len(asks)
    order = sorted(range(len(asks)), key=lambda n: len(asks[n].ids))
    with torch.inference_mode():
        for start in range(0, len(order), BESIDE):
            _draw(policy, asks, order[start : start + BESIDE], found)
    if broken := next((one for one in found if isinstance(one, BaseException)), None):
        raise broken
    return found


def _draw(policy: "Policy", asks: Sequence[Ask], which: Sequence[int], found: list[Any]) -> None:
    from offing_engine.batch import Batch, Work
    from offing_engine.sampling import Sampling

    def work(n: int) -> Work:
        ask = asks[n]
        return Work(ask.ids, ask.most, Sampling(ask.temperature), ask.seed, (), partial(found.__setitem__, n))

    batch = Batch(policy)
    batch.join([work(n) for n in which])
    while len(batch):
        batch.step()


@dataclass(slots=True)
class Table:
    """Where the rollouts of one step sit."""

    policy: "Policy"
    _seated: int = 0
    _waiting: "list[tuple[Ask, asyncio.Future[Completion]]]" = field(
        default_factory=list["tuple[Ask, asyncio.Future[Completion]]"]
    )

    def sit(self, count: int) -> None:
        """So many may ask from now on, and nobody is answered before everybody who sits asks."""
        self._seated += count

    def leave(self) -> None:
        """One of them asks no more."""
        self._seated -= 1
        self._serve()

    async def completion(self, ask: Ask) -> "Completion":
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
