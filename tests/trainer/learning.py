"""A learner's training in a process of its own: `python -m tests.trainer.learning WORK POLICY STEPS [KEY=VALUE …]`.

It samples rows from POLICY, trains for STEPS and saves under WORK after each. `kill=N` ends it by SIGKILL while it
saves for the Nth time, at `at=EVENT`; other keys are settings. `result.json` in WORK says what came of it.
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

from offing.core.rows import TrainRow
from offing_trainer.batch import Places
from offing_trainer.learner.contract import Derivatives, Forwarded
from offing_trainer.learner.local import LocalLearner, open_learner
from offing_trainer.learner.settings import Settings
from tests.trainer.sampled import rollouts


def loss(which: Places, seen: Forwarded) -> Derivatives:
    """Makes what was sampled likelier where the row has an even number, less likely elsewhere, and flatter."""
    count = len(seen.logp)
    sign = 1.0 if which[0] % 2 == 0 else -0.5
    value = float(-sign * seen.logp.sum() - 0.1 * seen.entropy.sum()) / 100
    return Derivatives(value, np.full(count, -sign / 100), np.full(count, -0.1 / 100))


def trained(learner: LocalLearner, rows: Sequence[TrainRow], steps: int, folder: Path | None = None) -> list[float]:
    """Losses of steps until there were `steps` in all; saves after each."""
    found: list[float] = []
    while learner.steps < steps:
        found.append(learner.forward_backward(rows, loss))
        learner.optim_step()
        if folder is not None:
            learner.save(folder)
    return found


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


def main(work: Path, policy: Path, steps: int, told: dict[str, Any]) -> None:
    kill, at = told.pop("kill", 0), told.pop("at", "")
    rows = rollouts(policy)
    settings = {"tokens_per_microbatch": 1, "learning_rate": 1e-2, "threads": 1, "device": "cpu"} | told
    learner = open_learner(policy, Settings.model_validate(settings))
    if kill:
        fatal(kill, at)
    losses = trained(learner, rows, steps, work / "state")
    found = learner.forward(rows)
    if os.environ.get("RANK", "0") == "0":
        said = {"processes": learner._ranks.count, "losses": losses, "logp": found.logp.tolist()}
        (work / "result.json").write_bytes(orjson.dumps(said))
    learner.export_policy(work / "exported", "full")


if __name__ == "__main__":
    pairs = (pair.split("=", 1) for pair in sys.argv[4:])
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), {k: orjson.loads(v) for k, v in pairs})
