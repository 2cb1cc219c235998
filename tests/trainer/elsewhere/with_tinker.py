"""Tinker's own types on a step that was handed over, and on an export. In an environment with tinker:

    PYTHONPATH=workers python tests/trainer/elsewhere/with_tinker.py FOLDER

The service is not reached: what is checked is that its client takes the datums, and that its published formula over
them is our loss.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offing_trainer.bridges.step_file import ExportedStep, list_step_files, read_step
from offing_trainer.bridges.tinker_datums import (
    build_adam_params,
    build_datums,
    build_loss_fn,
    parse_datum,
    serialize_datum,
)
from offing_trainer.bridges.verl_driver import compute_token_loss

torch: Any = import_module("torch")

CLOSE = 1e-5


def ppo(created: list[Any], logp: list[Any], options: dict[str, float]) -> float:
    """As Tinker's documentation has it, a sum over all tokens."""
    total = 0.0
    for datum, mine in zip(created, logp, strict=True):
        inputs = {name: tensor.to_torch() for name, tensor in datum.loss_fn_inputs.items()}
        ratio = torch.exp(mine - inputs["logprobs"])
        held = torch.clamp(ratio, options["clip_low_threshold"], options["clip_high_threshold"])
        total -= float(torch.minimum(ratio * inputs["advantages"], held * inputs["advantages"]).sum())
    return total


def checked(handed: ExportedStep) -> None:
    dice = np.random.default_rng(0)
    for nth in range(handed.optimizer_steps):
        rows = handed.list_rows(nth)
        name, options = build_loss_fn(handed.loss_spec)
        logp = [torch.from_numpy(row.behavior_logprobs + dice.normal(0, 0.3, len(row))) for row in rows]
        inputs = {
            key: torch.cat([torch.from_numpy(getattr(row, column)[row.loss_mask]) for row in rows])
            for key, column in (
                ("advantages", "advantages"),
                ("weights", "weights"),
                ("old_logprobs", "behavior_logprobs"),
            )
        }
        ours, _ = compute_token_loss(
            handed.loss_spec, torch.cat([one[row.loss_mask] for one, row in zip(logp, rows, strict=True)]), inputs
        )
        theirs = ppo(build_datums(rows, handed.loss_spec), [one[1:] for one in logp], options)
        print(name, options, f"apart {abs(float(ours) - theirs):.1e}")
        assert name == "ppo"
        assert abs(float(ours) - theirs) < CLOSE
    print(build_adam_params(handed))


def wired(documents: list[dict[str, Any]]) -> None:
    """The client's own models of the protocol accept the documents unchanged."""
    datum: Any = import_module("tinker.types._pydantic_types.datum").Datum
    for one in documents:
        whole = datum.model_validate({name: one[name] for name in ("model_input", "loss_fn_inputs")})
        assert whole.model_input.length == len(whole.loss_fn_inputs["target_tokens"].data)
    print(len(documents), "documents taken")


def main(folder: Path) -> None:
    handed = read_step(list_step_files(folder / "plain")[0])
    checked(handed)
    wired([serialize_datum(row, handed.loss_spec) for row in handed.rows])
    exported = [json.loads(line) for line in (folder / "rows.tinker.jsonl").read_text().splitlines()]
    wired(exported)
    left = import_module("tinker_cookbook.rl.train")._remove_mask(parse_datum(exported[0]))
    assert set(left.loss_fn_inputs) == {"target_tokens", "logprobs"}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
