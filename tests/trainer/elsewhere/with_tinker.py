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

from offing_trainer.bridges.handed import Handed, read_step, steps_in
from offing_trainer.bridges.tinker_datums import adam, datum_of, datums, document, loss_of
from offing_trainer.bridges.verl_driver import token_loss

torch: Any = import_module("torch")

CLOSE = 1e-5


def ppo(made: list[Any], logp: list[Any], options: dict[str, float]) -> float:
    """As Tinker's documentation has it, a sum over all tokens."""
    total = 0.0
    for datum, mine in zip(made, logp, strict=True):
        inputs = {name: tensor.to_torch() for name, tensor in datum.loss_fn_inputs.items()}
        ratio = torch.exp(mine - inputs["logprobs"])
        held = torch.clamp(ratio, options["clip_low_threshold"], options["clip_high_threshold"])
        total -= float(torch.minimum(ratio * inputs["advantages"], held * inputs["advantages"]).sum())
    return total


def checked(handed: Handed) -> None:
    dice = np.random.default_rng(0)
    for nth in range(handed.optimiser_steps):
        rows = handed.rows_of(nth)
        name, options = loss_of(handed.terms)
        logp = [torch.from_numpy(row.behaviour_logprobs + dice.normal(0, 0.3, len(row))) for row in rows]
        given = {
            key: torch.cat([torch.from_numpy(getattr(row, column)[row.loss_mask]) for row in rows])
            for key, column in (
                ("advantages", "advantages"),
                ("weights", "weights"),
                ("old_logprobs", "behaviour_logprobs"),
            )
        }
        ours, _ = token_loss(
            handed.terms, torch.cat([one[row.loss_mask] for one, row in zip(logp, rows, strict=True)]), given
        )
        theirs = ppo(datums(rows, handed.terms), [one[1:] for one in logp], options)
        print(name, options, f"apart {abs(float(ours) - theirs):.1e}")
        assert name == "ppo"
        assert abs(float(ours) - theirs) < CLOSE
    print(adam(handed))


def wired(documents: list[dict[str, Any]]) -> None:
    """The client's own models of the wire take the documents as they are."""
    datum: Any = import_module("tinker.types._pydantic_types.datum").Datum
    for one in documents:
        whole = datum.model_validate({name: one[name] for name in ("model_input", "loss_fn_inputs")})
        assert whole.model_input.length == len(whole.loss_fn_inputs["target_tokens"].data)
    print(len(documents), "documents taken")


def main(folder: Path) -> None:
    handed = read_step(steps_in(folder / "plain")[0])
    checked(handed)
    wired([document(row, handed.terms) for row in handed.rows])
    exported = [json.loads(line) for line in (folder / "rows.tinker.jsonl").read_text().splitlines()]
    wired(exported)
    left = import_module("tinker_cookbook.rl.train")._remove_mask(datum_of(exported[0]))
    assert set(left.loss_fn_inputs) == {"target_tokens", "logprobs"}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
