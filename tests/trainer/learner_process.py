"""Train with a learner in its own process.

Run `python -m tests.trainer.learner_process WORK POLICY STEPS [KEY=VALUE …]`.

It samples rows from POLICY, trains for STEPS and saves under WORK after each. `kill=N` ends it by SIGKILL while it
saves for the Nth time, at `at=EVENT`; other keys are settings. `result.json` in WORK contains the result.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Indices
from offing_trainer.learner.contract import ForwardResult, LossGradients
from offing_trainer.learner.local_learner import LocalLearner, open_learner
from offing_trainer.learner.settings import LearnerSettings
from tests.trainer.sampled_rollouts import rollouts


def loss(which: Indices, seen: ForwardResult) -> LossGradients:
    """Makes what was sampled likelier where the row has an even number, less likely elsewhere, and flatter."""
    count = len(seen.logprobs)
    sign = 1.0 if which[0] % 2 == 0 else -0.5
    value = float(-sign * seen.logprobs.sum() - 0.1 * seen.entropy.sum()) / 100
    return LossGradients(value, np.full(count, -sign / 100), np.full(count, -0.1 / 100))


def trained(learner: LocalLearner, rows: Sequence[TrainingRow], steps: int, folder: Path | None = None) -> list[float]:
    """Losses of steps until there were `steps` in all; saves after each."""
    results: list[float] = []
    while learner.optimizer_steps < steps:
        results.append(learner.forward_backward(rows, loss))
        learner.optim_step()
        if folder is not None:
            learner.save(folder)
    return results


def digest(folder: Path) -> str:
    """Of the weights and moments that were saved."""
    files = ("weights.safetensors", "moments.safetensors")
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in files)).hexdigest()


def fatal(nth: int, event: str) -> None:
    """Ends this process by SIGKILL when `event` of folders' work happens the nth time."""
    seen = 0

    def heard(name: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if name == event and ("state" in str(args[0])):
            seen += 1
            if seen == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def main(work: Path, policy: Path, steps: int, events: dict[str, Any]) -> None:
    kill, at = events.pop("kill", 0), events.pop("at", "")
    rows = rollouts(policy)
    settings = {"max_tokens_per_micro_batch": 1, "learning_rate": 1e-2, "cpu_threads": 1, "device": "cpu"} | events
    learner = open_learner(policy, LearnerSettings.model_validate(settings))
    if kill:
        fatal(kill, at)
    losses = trained(learner, rows, steps, work / "state")
    result = learner.forward(rows)
    if os.environ.get("RANK", "0") == "0":
        messages = {"processes": learner._ranks.world_size, "losses": losses, "logp": result.logprobs.tolist()}
        (work / "result.json").write_bytes(orjson.dumps(messages))
    learner.export_policy(work / "exported", "full")


if __name__ == "__main__":
    pairs = (pair.split("=", 1) for pair in sys.argv[4:])
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), {k: orjson.loads(v) for k, v in pairs})
