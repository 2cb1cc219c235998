"""Several processes train as one does: the same losses and weights for any assignment of rows."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import load_file

from offing.core.training_rows import TrainingRow
from offing_trainer.learner.local_learner import open_learner
from offing_trainer.learner.settings import LearnerSettings
from tests.ports import free_port

STEPS = "3"

SECONDS = 110
"""For one process to train."""


def launched(work: Path, policy: Path, ranks: int, port: int, *message: str) -> dict[str, Any]:
    """Training in the given number of processes, each told its place as a launcher tells it; the result."""
    work.mkdir()
    command = [sys.executable, "-m", "tests.trainer.learner_process", str(work), str(policy), STEPS, *message]
    shared = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "WORLD_SIZE": str(ranks)}
    shared |= {"LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            command, env=os.environ | shared | {"RANK": str(n), "LOCAL_RANK": str(n)}, stderr=subprocess.PIPE, text=True
        )
        for n in range(ranks)
    ]
    errors = [process.communicate(timeout=SECONDS)[1] for process in started]
    assert [process.returncode for process in started] == [0] * ranks, errors[0][-3000:]
    return orjson.loads((work / "result.json").read_bytes())


@pytest.fixture(scope="module")
def train_alone(tmp_path_factory: pytest.TempPathFactory, policy_folder: Path) -> Callable[..., Path]:
    """Train in one process, once for the same messages. Returns the folder of the result."""
    folder = tmp_path_factory.mktemp("alone")

    @cache
    def train(*messages: str) -> Path:
        work = folder / str(len(messages))
        assert launched(work, policy_folder, 1, 0, *messages)["processes"] == 1
        return work

    return train


@pytest.mark.slow
@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.parametrize("messages", [(), ("sharded=true",), ('kind="lora"',)], ids=["whole", "sharded", "adapters"])
def test_two_processes_train_as_one(
    tmp_path: Path,
    policy_folder: Path,
    sampled_rows: list[TrainingRow],
    train_alone: Callable[..., Path],
    messages: tuple[str, ...],
):
    one_process = train_alone(*(one for one in messages if one != "sharded=true"))
    alone = orjson.loads((one_process / "result.json").read_bytes())
    both = launched(tmp_path / "both", policy_folder, 2, free_port(), *messages)
    assert both["processes"] == 2
    assert both["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert len(set(alone["losses"])) == int(STEPS)
    assert np.abs(np.array(both["logp"]) - np.array(alone["logp"])).max() < 1e-4
    resumed = open_learner(
        policy_folder, LearnerSettings.model_validate({"kind": "lora" if "lora" in str(messages) else "full"})
    )
    resumed.load(tmp_path / "both" / "state")  # one process continues where two were
    assert np.abs(resumed.forward(sampled_rows).logprobs - np.array(both["logp"])).max() < 1e-5
    one, other = (load_file(work / "exported" / "model.safetensors") for work in (one_process, tmp_path / "both"))
    assert one.keys() == other.keys()
    assert max(np.abs(one[name] - other[name]).max() for name in one) < 1e-4
