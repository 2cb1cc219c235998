"""The interface of a learner. The loss is a function that returns gradients.

It follows Tinker's API: forward, forward_backward, optim_step, save, load, export_policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class ForwardResult:
    """What the model computed for rows. P counts the trained tokens (`loss_mask`) of all rows in order."""

    logprobs: Floats
    """Logprobs of the tokens, (P,)."""
    entropy: Floats
    """Entropy of the whole distribution in nats, (P,)."""
    values: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """Values by critic column, one per turn of the rows in order. Empty if the learner has no critic."""


@dataclass(frozen=True, slots=True, eq=False)
class LossGradients:
    """A part of the loss, with its gradients by the forwarded results."""

    value: float
    logprob_grads: Floats
    entropy_grads: Floats | None = None
    value_grads: Mapping[str, Floats] = field(default_factory=dict[str, Floats])


LossFunction = Callable[[Indices, ForwardResult], LossGradients]
"""Called with the indices of the rows that were forwarded together, and with their result."""


@dataclass(frozen=True, slots=True)
class OptimizerStepResult:
    """Result of an optimizer step."""

    grad_norm: float
    """Norm before clipping."""
    learning_rate: float
    skipped: bool = False
    """Whether the gradient was not finite, so that the weights were not changed."""


class ForwardModel(Protocol):
    """Model weights that rows can be forwarded through, such as a reference policy."""

    def forward(self, rows: Sequence[TrainingRow]) -> ForwardResult: ...


class Learner(ForwardModel, Protocol):
    """Model weights with an optimizer and its schedule."""

    def forward_backward(self, rows: Sequence[TrainingRow], loss: LossFunction) -> float:
        """Accumulate the gradient and return the sum of the micro-batches' losses.

        Rows are split into micro-batches by their number of tokens, and no row is cut.
        """
        ...

    def optim_step(self) -> OptimizerStepResult: ...

    def save(self, folder: Path, moments_of: Path | None = None) -> None:
        """Save everything that is needed to continue exactly, including random states.

        `moments_of` is an earlier saved state of the same file system. Its moments and random states are used in place
        of the present ones, which saves the time to write them.
        """
        ...

    def load(self, folder: Path) -> None: ...

    def export_policy(self, folder: Path, kind: Literal["full", "lora"]) -> None:
        """Export Hugging Face files with tokenizer and template, which an engine can serve."""
        ...
