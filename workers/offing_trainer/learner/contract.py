"""What a learner does, whatever it stands on. Knows no algorithm: a loss comes as a function that gives derivatives.

The shape follows Tinker's: forward, forward_backward, optim_step, save, load, export_policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from offing.core.rows import TrainRow
from offing_trainer.batch import Floats, Places


@dataclass(frozen=True, slots=True, eq=False)
class Forwarded:
    """What weights say of rows; P: the trained tokens (`loss_mask`) of all rows, row after row."""

    logp: Floats
    """(P,) of the token that is there."""
    entropy: Floats
    """(P,) nats of the whole distribution."""
    values: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """(turns of the rows, row after row) by critic head. Empty: the learner has no critic."""


@dataclass(frozen=True, slots=True, eq=False)
class Derivatives:
    """A part of the loss, and its derivatives by what was forwarded."""

    value: float
    dlogp: Floats
    dentropy: Floats | None = None
    dvalues: Mapping[str, Floats] = field(default_factory=dict[str, Floats])


LossOf = Callable[[Places, Forwarded], Derivatives]
"""Given which of the rows were forwarded together, and what came of it."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimiser step."""

    grad_norm: float
    """Before clipping."""
    lr: float
    skipped: bool = False
    """The gradient was not finite; the weights are as they were."""


class Learner(Protocol):
    """Weights, an optimiser and its schedule."""

    def forward(self, rows: Sequence[TrainRow]) -> Forwarded: ...

    def forward_backward(self, rows: Sequence[TrainRow], loss: LossOf) -> float:
        """Adds to the gradient; the sum of the parts' values. Rows are cut into micro-batches by tokens, each whole."""
        ...

    def optim_step(self) -> Stepped: ...

    def save(self, folder: Path) -> None:
        """Everything that is needed to go on as if nothing had happened, random states included."""
        ...

    def load(self, folder: Path) -> None: ...

    def export_policy(self, folder: Path, kind: Literal["full", "lora"]) -> None:
        """As Hugging Face files with tokenizer and template, that an engine can serve."""
        ...
