"""Steps that were handed over, as datums of Tinker and of what speaks its wire:

    for file in steps_in(DIR):
        handed = read_step(file)
        for nth in range(handed.optimiser_steps):
            name, options = loss_of(handed.terms)
            client.forward_backward(datums(handed.rows_of(nth), handed.terms), name, loss_fn_config=options)
            client.optim_step(adam(handed))

Tinker adds a loss up over tokens and divides by nothing, so that an advantage times its weight is all that it must be
told. Imports numpy and `handed`, and tinker where its own objects are asked for.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from offing_trainer.bridges.handed import Handed, HandedRow, Terms


def loss_of(terms: Terms) -> tuple[str, dict[str, float]]:
    """Tinker's name for the loss, and its options. Raises ValueError for what Tinker has no words for."""
    if terms.kl_coefficient or terms.entropy:
        raise ValueError("Tinker's losses have no reference and no entropy term: hand over with chain.regularise = []")
    if terms.surrogate == "cross-entropy":
        return "cross_entropy", {}
    if terms.surrogate != "ppo-clip" or terms.anchor != "behaviour" or terms.dual is not None:
        raise ValueError('of ratios Tinker has ppo-clip to what was sampled (learner.mode = "bypass"), not dual')
    return "ppo", {"clip_low_threshold": 1 - terms.low, "clip_high_threshold": 1 + terms.high}


def document(row: HandedRow, terms: Terms) -> dict[str, Any]:
    """One datum as it goes over the wire. Entry n of every loss input is about token n + 1."""
    if row.temperature != 1:
        raise ValueError(f"row {row.key} was sampled at temperature {row.temperature:g}; Tinker trains at 1")
    credit = row.advantages * row.weights
    if terms.surrogate == "cross-entropy":
        inputs = {"weights": _tensor(np.maximum(credit, 0)[1:])}
    else:
        inputs = {"logprobs": _tensor(row.behaviour_logprobs[1:]), "advantages": _tensor(credit[1:])}
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": row.token_ids[:-1].tolist()}]},
        "loss_fn_inputs": {"target_tokens": _tensor(row.token_ids[1:], "int64"), **inputs},
    }


def _tensor(values: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"data": values.tolist(), "dtype": dtype, "shape": [len(values)]}


def datums(rows: Sequence[HandedRow], terms: Terms) -> list[Any]:
    """An optimiser step's rows as `tinker.Datum`."""
    return [datum_of(document(row, terms)) for row in rows]


def datum_of(one: Mapping[str, Any]) -> Any:
    """A document, of here or of an export, as `tinker.Datum`; what else it says is left out."""
    tinker: Any = import_module("tinker")
    (chunk,) = one["model_input"]["chunks"]
    inputs = {name: tinker.TensorData(**tensor) for name, tensor in one["loss_fn_inputs"].items()}
    return tinker.Datum(model_input=tinker.ModelInput.from_ints(chunk["tokens"]), loss_fn_inputs=inputs)


def adam(handed: Handed) -> Any:
    """The job's optimiser as `tinker.AdamParams`; its warm-up is the caller's to follow."""
    how, tinker = handed.learner, import_module("tinker")
    made: Any = tinker.AdamParams
    return made(
        learning_rate=how["learning_rate"],
        beta1=how["betas"][0],
        beta2=how["betas"][1],
        eps=how["epsilon"],
        weight_decay=how["weight_decay"],
        grad_clip_norm=how["gradient_clip"] or 0.0,
    )
