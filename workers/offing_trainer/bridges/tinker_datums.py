"""Exported steps as datums of Tinker and of compatible services.

    for file in list_step_files(DIR):
        step = read_step(file)
        for nth in range(step.optimizer_steps):
            name, options = build_loss_fn(step.loss_spec)
            datums = build_datums(step.list_rows(nth), step.loss_spec)
            client.forward_backward(datums, name, loss_fn_config=options)
            client.optim_step(build_adam_params(step))

Tinker sums the loss over tokens and does not divide, so it only needs each advantage times its
weight. This module imports numpy and `step_file`, and tinker where Tinker's objects are built.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from offing_trainer.bridges.step_file import ExportedRow, ExportedStep, LossSpec


def build_loss_fn(loss_spec: LossSpec) -> tuple[str, dict[str, float]]:
    """Return Tinker's name and options of the loss. Raises ValueError for a loss that Tinker lacks."""
    if loss_spec.kl_coefficient or loss_spec.entropy_coefficient:
        raise ValueError(
            "Tinker's losses have no reference and no entropy term. Export with pipeline.regularizers = []."
        )
    if loss_spec.surrogate == "cross-entropy":
        return "cross_entropy", {}
    if loss_spec.surrogate != "ppo-clip" or loss_spec.ratio_to != "behavior" or loss_spec.dual_clip is not None:
        raise ValueError(
            'Tinker supports only ppo-clip with ratios to the sampling policy (learner.mode = "bypass"), without a '
            "dual clip"
        )
    return "ppo", {"clip_low_threshold": 1 - loss_spec.clip_low, "clip_high_threshold": 1 + loss_spec.clip_high}


def serialize_datum(row: ExportedRow, loss_spec: LossSpec) -> dict[str, Any]:
    """Return one datum as JSON for the API. Entry n of each loss input belongs to token n + 1."""
    if row.temperature != 1:
        raise ValueError(
            f"row {row.key} was sampled at temperature {row.temperature:g}; Tinker supports only temperature 1"
        )
    token_advantage = row.advantages * row.token_weights
    if loss_spec.surrogate == "cross-entropy":
        inputs = {"weights": _serialize_tensor(np.maximum(token_advantage, 0)[1:])}
    else:
        inputs = {
            "logprobs": _serialize_tensor(row.behavior_logprobs[1:]),
            "advantages": _serialize_tensor(token_advantage[1:]),
        }
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": row.token_ids[:-1].tolist()}]},
        "loss_fn_inputs": {"target_tokens": _serialize_tensor(row.token_ids[1:], "int64"), **inputs},
    }


def _serialize_tensor(values: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"data": values.tolist(), "dtype": dtype, "shape": [len(values)]}


def build_datums(rows: Sequence[ExportedRow], loss_spec: LossSpec) -> list[Any]:
    """Return the rows of an optimizer step as `tinker.Datum`."""
    return [parse_datum(serialize_datum(row, loss_spec)) for row in rows]


def parse_datum(document: Mapping[str, Any]) -> Any:
    """Convert a serialized datum, from here or from an export, to `tinker.Datum`.

    Other keys of the document are ignored.
    """
    tinker: Any = import_module("tinker")
    (chunk,) = document["model_input"]["chunks"]
    inputs = {name: tinker.TensorData(**tensor) for name, tensor in document["loss_fn_inputs"].items()}
    return tinker.Datum(model_input=tinker.ModelInput.from_ints(chunk["tokens"]), loss_fn_inputs=inputs)


def build_adam_params(exported_step: ExportedStep) -> Any:
    """Return the job's optimizer settings as `tinker.AdamParams`. The caller applies the warm-up."""
    learner, tinker = exported_step.learner, import_module("tinker")
    params_type: Any = tinker.AdamParams
    return params_type(
        learning_rate=learner["learning_rate"],
        beta1=learner["betas"][0],
        beta2=learner["betas"][1],
        eps=learner["epsilon"],
        weight_decay=learner["weight_decay"],
        grad_clip_norm=learner["max_grad_norm"] or 0.0,
    )
