"""AdamW with gradient clipping and a learning-rate schedule.

The learning rate is a function of the number of steps, so the schedule has no other state.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from offing.core.errors import InvalidInput
from offing_trainer.learner.contract import OptimizerStepResult
from offing_trainer.learner.process_group import gather_tensor
from offing_trainer.learner.settings import LearnerSettings

CRITIC_PREFIX = "values."
"""Prefix of the names of the critic's weights."""


def learning_rate_factor(step: int, settings: LearnerSettings) -> float:
    """Return the learning rate at a step, from 0, as a fraction of its maximum.

    It rises linearly during the warm-up. After that it stays constant or falls along half a cosine.
    """
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    if settings.schedule == "constant":
        return 1.0
    last = max(1, (settings.schedule_steps or 0) - settings.warmup_steps)
    part = min(1.0, (step - settings.warmup_steps) / last)
    return (
        settings.min_learning_rate_fraction
        + (1.0 - settings.min_learning_rate_fraction) * (1.0 + math.cos(math.pi * part)) / 2.0
    )


class Optimizer:
    """Updates named weights. The critic's weights have a separate learning rate."""

    def __init__(self, weights: Mapping[str, nn.Parameter], settings: LearnerSettings) -> None:
        if settings.schedule == "cosine" and settings.schedule_steps is None:
            raise InvalidInput(
                "schedule_steps", "the cosine schedule needs it", "Set it, or use the constant schedule."
            )
        self.steps = 0
        """Number of steps that changed weights."""
        self._settings = settings
        self.names = [
            [name for name in weights if not name.startswith(CRITIC_PREFIX)],
            [name for name in weights if name.startswith(CRITIC_PREFIX)],
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

    def step(self) -> OptimizerStepResult:
        """Apply the gradient and clear it.

        If it is not finite, neither the weights nor the schedule change.
        """
        factor = learning_rate_factor(self.steps, self._settings)
        norms = [float(_gradient_norm(params)) for params, _ in self._kinds]
        lr = self._settings.learning_rate * factor
        if not all(math.isfinite(norm) for norm in norms):
            self.adamw.zero_grad()
            return OptimizerStepResult(norms[0], lr, skipped=True)
        for group, (params, base_rate), norm in zip(self.adamw.param_groups, self._kinds, norms, strict=True):
            group["lr"] = base_rate * factor
            _clip_gradients(params, norm, self._settings.max_grad_norm)
        self.adamw.step()
        self.adamw.zero_grad()
        self.steps += 1
        return OptimizerStepResult(norms[0], lr)


def _gradient_norm(params: Sequence[nn.Parameter]) -> Tensor:
    grads = [p.grad for p in params if p.grad is not None]
    return gather_tensor(torch.nn.utils.get_total_norm(grads)) if grads else torch.zeros(())


def _clip_gradients(params: Sequence[nn.Parameter], norm: float, max_norm: float | None) -> None:
    if max_norm is None or norm <= max_norm:
        return
    for p in params:
        if p.grad is not None:
            p.grad.mul_(max_norm / norm)
