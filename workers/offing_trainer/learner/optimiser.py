"""AdamW with a schedule: the gradient is looked at, cut, and used or thrown away.

The only home of the learning rate. The rate is a function of the number of steps taken, so that there is no schedule's
state beside that number.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing_trainer.learner.contract import Stepped
from offing_trainer.learner.ranks import gathered
from offing_trainer.learner.settings import Settings

CRITIC = "values."
"""How names of the critic's weights begin."""


def rate(step: int, settings: Settings) -> float:
    """Share of the full learning rate at a step, from 0: a line up over `warmup`, then level or half a cosine down."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    if settings.schedule == "constant":
        return 1.0
    last = max(1, (settings.steps or 0) - settings.warmup)
    part = min(1.0, (step - settings.warmup) / last)
    return settings.floor + (1.0 - settings.floor) * (1.0 + math.cos(math.pi * part)) / 2.0


class Optimiser:
    """Moves weights given by name; the critic's at a rate of their own."""

    def __init__(self, weights: Mapping[str, nn.Parameter], settings: Settings) -> None:
        if settings.schedule == "cosine" and settings.steps is None:
            raise InvalidInput("steps", "cosine needs to know how long training is", "Give steps, or use constant.")
        self.steps = 0
        """That moved weights."""
        self._settings = settings
        self.names = [
            [name for name in weights if not name.startswith(CRITIC)],
            [name for name in weights if name.startswith(CRITIC)],
        ]
        heights = (settings.learning_rate, settings.critic.learning_rate if settings.critic else 0.0)
        self._kinds = [
            ([weights[n] for n in names], lr) for names, lr in zip(self.names, heights, strict=True) if names
        ]
        self.adamw = torch.optim.AdamW(
            [{"params": params, "lr": lr} for params, lr in self._kinds],
            betas=settings.betas,
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def step(self) -> Stepped:
        """Uses the gradient and clears it. Where it is not finite, nothing moves and the schedule stays."""
        share = rate(self.steps, self._settings)
        norms = [float(_norm(params)) for params, _ in self._kinds]
        lr = self._settings.learning_rate * share
        if not all(math.isfinite(norm) for norm in norms):
            self.adamw.zero_grad()
            return Stepped(norms[0], lr, skipped=True)
        for group, (params, height), norm in zip(self.adamw.param_groups, self._kinds, norms, strict=True):
            group["lr"] = height * share
            _cut(params, norm, self._settings.gradient_clip)
        self.adamw.step()
        self.adamw.zero_grad()
        self.steps += 1
        return Stepped(norms[0], lr)


def _norm(params: Sequence[nn.Parameter]) -> Tensor:
    grads = [p.grad for p in params if p.grad is not None]
    return gathered(torch.nn.utils.get_total_norm(grads)) if grads else torch.zeros(())


def _cut(params: Sequence[nn.Parameter], norm: float, most: float | None) -> None:
    if most is None or norm <= most:
        return
    for p in params:
        if p.grad is not None:
            p.grad.mul_(most / norm)
