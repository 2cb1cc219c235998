"""Training speed compared with a bare torch loop, rows of many turns compared with rows of one, memory, and advantages.

The bare loop forwards the same rows of the same weights in batches of the same size, with the output head where tokens
are trained, one weighted sum of log probabilities as its loss, and AdamW. Both are measured in turns.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from offing.core.training_rows import TrainingRow, build_rows
from tests.bench.measurement import Aim, Measurement
from tests.unit.exports.builders import many_turns, packed, trajectory_metadata

VOCABULARY = 2048
REPEATS = 5
MEBIBYTE = 1 << 20

TURNS, ROLLOUTS = 6, 8


@dataclass(frozen=True, slots=True)
class Shape:
    """Tokens of a rollout."""

    prompt: int
    observation: int
    action: int

    def __str__(self) -> str:
        return f"{self.prompt}/{self.observation}/{self.action}"


SHAPES = (Shape(64, 16, 16), Shape(128, 64, 32), Shape(256, 128, 64))

MEASURED = "from tests.bench.trainer import peak; from pathlib import Path; print(peak(Path({path!r})))"


def trainer_speed() -> list[Measurement]:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from offing_engine.random_policy import create_random_policy

    threads = max(1, (os.cpu_count() or 2) - 1)
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p@1"
        create_random_policy(path, [f"w{n}" for n in range(VOCABULARY)], size="small")
        return [
            _against_bare(path, threads),
            *(_merging(path, shape) for shape in SHAPES),
            _memory(path),
            _advantages(),
        ]


def _rows(shape: Shape, count: int, seed: int) -> list[TrainingRow]:
    """Return append-only transcripts of `TURNS` turns with random ids."""
    dice = np.random.default_rng(seed)

    def ids(count: int) -> list[int]:
        return dice.integers(6, VOCABULARY, count).tolist()

    def transcript() -> TrainingRow:
        turns = [(ids(shape.observation if n else shape.prompt), ids(shape.action)) for n in range(TURNS)]
        return build_rows(trajectory_metadata(), packed(*turns, turns=many_turns(TURNS, temperature=(1.0,) * TURNS)))[0]

    return [transcript() for _ in range(count)]


def _step(learner: Any, rows: Sequence[TrainingRow]) -> Callable[[], None]:
    from offing_trainer.learner.contract import ForwardResult, LossGradients

    def likelier(_: object, seen: ForwardResult) -> LossGradients:
        return LossGradients(-float(seen.logprobs.sum()), -np.ones(len(seen.logprobs)))

    def taken() -> None:
        learner.forward_backward(rows, likelier)
        learner.optim_step()

    return taken


def _bare_step(path: Path, rows: Sequence[TrainingRow], maximum: int) -> Callable[[], None]:
    """Train these rows with a plain torch loop."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(path)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    together = max(1, maximum // max(len(row) for row in rows))

    def taken() -> None:
        for start in range(0, len(rows), together):
            some = rows[start : start + together]
            ids = torch.tensor(np.stack([row.token_ids for row in some])).long()
            mask = torch.tensor(np.stack([row.loss_mask for row in some]))[:, 1:]
            hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state[mask]
            logps = torch.log_softmax(model.lm_head(hidden), -1).gather(1, ids[:, 1:][mask][:, None])
            (-logps.sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad()

    return taken


def _seconds(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def _in_turns(one: Callable[[], None], other: Callable[[], None]) -> list[tuple[float, float]]:
    """Return the seconds of both, after a round that does not count."""
    return [(_seconds(one), _seconds(other)) for _ in range(REPEATS + 1)][1:]


def _opened(path: Path) -> Any:
    from offing_trainer.learner.local_learner import open_learner
    from offing_trainer.learner.settings import LearnerSettings

    return open_learner(path, LearnerSettings(learning_rate=1e-6, device="cpu"))


def _against_bare(path: Path, threads: int) -> Measurement:
    shape = SHAPES[0]
    rows = _rows(shape, 64, 1)
    tokens = sum(len(row) for row in rows)
    pairs = _in_turns(_step(_opened(path), rows), _bare_step(path, rows, 4096))
    return Measurement(
        f"trainer, a step of {len(rows)} rows of {TURNS} turns of {shape} tokens, 1M weights, {threads} thread(s)",
        tuple(tokens / ours for ours, _ in pairs),
        "tokens/s",
        tuple(tokens / bare for _, bare in pairs),
        aim=Aim("at least 0.90", at_least=0.9, of_ratio=True),
    )


def _merging(path: Path, shape: Shape) -> Measurement:
    from tests.trainer.sampled_rollouts import by_turn

    learner, rows = _opened(path), _rows(shape, ROLLOUTS, 2)
    parts = [part for row in rows for part in by_turn(row)]
    pairs = _in_turns(_step(learner, rows), _step(learner, parts))
    return Measurement(
        f"trainer, {ROLLOUTS} rollouts of {TURNS} turns of {shape} tokens, one row per segment; bare: one per turn",
        tuple(whole for whole, _ in pairs),
        "ms",
        tuple(apart for _, apart in pairs),
        ratios=tuple(apart / whole for whole, apart in pairs),
        ratio_what="times as fast",
        aim=Aim("at least 3", at_least=3, of_ratio=True),
    )


def _memory(path: Path) -> Measurement:
    own = subprocess.run(
        [sys.executable, "-c", MEASURED.format(path=str(path))], capture_output=True, text=True, check=True
    )
    bytes_held = int(own.stdout)
    return Measurement(
        "maximum memory of a process that trains 1M weights",
        (bytes_held / MEBIBYTE,),
        "MB",
        aim=Aim("at most 1,200 MB", at_most=1200),
    )


def peak(path: Path) -> int:
    """Return the maximum bytes of a separate process while it made three steps."""
    import resource

    step = _step(_opened(path), _rows(SHAPES[0], 64, 3))
    for _ in range(3):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _advantages() -> Measurement:
    """Compute everything between rows and the first forward pass: rewards, advantages, minibatch split, weights."""
    from offing_trainer.training_step import apply_view, compute_advantages, compute_token_weights
    from tests.trainer.builders import a_recipe, random_groups

    pipeline, rng = a_recipe("flow-grpo", regularizers=[]), np.random.default_rng(4)
    seen = apply_view(pipeline, random_groups(4, groups=3200, rollouts=8, segments=1, turns=7, tokens=7), {}, rng)

    def credited() -> None:
        compute_token_weights(pipeline, compute_advantages(pipeline, seen, {}, rng), {})

    seconds = tuple(_seconds(credited) for _ in range(REPEATS))
    return Measurement(
        f"advantages and weights of {seen.batch.num_turns:,} turns, {seen.batch.num_tokens:,} tokens (Flow-GRPO)",
        seconds,
        "ms",
        aim=Aim("below 1 s", at_most=1),
    )
