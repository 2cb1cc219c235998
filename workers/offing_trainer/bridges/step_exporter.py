"""Export of stored groups as training steps for another trainer.

Groups are selected and advantages computed as in a training job. An export is not a job: it writes no ledger
and registers nothing. It stores its position in the folder and continues from there when it is
called again. The policy that the other trainer produces is registered with `offing policy add`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.errors import InvalidInput
from offing.storage import training_groups
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupSummary
from offing_trainer.bridges.loss_spec import build_loss_spec, export_learner_settings
from offing_trainer.bridges.step_file import END_FILE, ExportedStep, LossSpec, step_path
from offing_trainer.bridges.step_rows import iter_exported_rows, prepare_step, write_step
from offing_trainer.config import TrainConfig
from offing_trainer.job import group_selection
from offing_trainer.job.group_loader import LoadedGroups, load_groups
from offing_trainer.job.group_query import build_group_query
from offing_trainer.job.group_selection import GroupSelection, StepSize
from offing_trainer.pipeline import Pipeline, build_job_pipeline
from offing_trainer.plugin import REPLAY_TABLE

GROUP_PAGE_SIZE = 64
"""Number of groups per query."""

MAX_GROUPS_FACTOR = 4
"""See `config.DataConfig.max_groups_per_step`."""

POLL_SECONDS = 2.0

POSITION_FILE = "position.json"
"""File in the folder with the position after the last step."""


@dataclass(frozen=True, slots=True)
class ExportPosition:
    """Position of a step export after its last step."""

    step: int = 0
    last_group: tuple[datetime, UUID] | None = None
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """State tables of plug-ins."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """An exported step."""

    file: Path
    groups: int
    rows: int
    tokens: int
    optimizer_steps: int


ExportCallback = Callable[[ExportedFile], None]


@dataclass(frozen=True, slots=True)
class _ExportContext:
    database: Database
    tenant_id: UUID
    config: TrainConfig
    pipeline: Pipeline
    loss_spec: LossSpec
    policy: PolicyVersionRow
    folder: Path


async def export_steps(
    database: Database,
    tenant_id: UUID,
    config: TrainConfig,
    policy: PolicyVersionRow,
    folder: Path,
    *,
    follow: bool,
    on_exported: ExportCallback,
) -> ExportPosition:
    """Export all complete steps, and the remaining groups as the last step.

    With `follow`, it waits for more groups until `config.max_steps`. Raises InvalidInput for a pipeline
    that cannot be trained elsewhere, and for a folder whose export has ended.
    """
    pipeline = build_job_pipeline(config)
    context = _ExportContext(database, tenant_id, config, pipeline, build_loss_spec(config, pipeline), policy, folder)
    _check_exportable(context)
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  # a command's own folder, once
    position = _read_position(folder)
    while config.max_steps is None or position.step < config.max_steps:
        selection = await _select_groups(context, position)
        if selection.is_full or (selection.groups and not follow and selection.informative_count):
            position = await _export_step(context, position, selection, on_exported)
        elif follow:
            await asyncio.sleep(POLL_SECONDS)
        else:
            break
    _write_json(folder / END_FILE, {"steps": position.step})
    return position


def _check_exportable(context: _ExportContext) -> None:
    if (context.folder / END_FILE).is_file():
        raise InvalidInput("--output", f"the export to {context.folder} has ended", "Use another folder.")
    if context.policy.kind != "full":
        problem = f"{context.config.policy} is an adapter, but other trainers need full weights"
        raise InvalidInput("policy", problem, "Train with `offing train`.")
    if REPLAY_TABLE in context.pipeline.state_tables:
        raise InvalidInput("pipeline.selectors", "replayed rollouts cannot be exported", "Remove success-replay.")
    if context.config.collect is not None:
        raise InvalidInput("collect", "an export uses stored rollouts only", "Remove the table, or use `offing loop`.")


async def _select_groups(context: _ExportContext, position: ExportPosition) -> GroupSelection:
    """Select the next step's groups.

    A selection that is not full has all remaining groups.
    """
    data, summaries, after = context.config.data, list[GroupSummary](), position.last_group
    max_groups = data.max_groups_per_step or data.groups_per_step * MAX_GROUPS_FACTOR
    step_size = StepSize(data.groups_per_step, data.min_informative_groups, max_groups, data.max_version_lag)
    while True:
        async with context.database.transaction(context.tenant_id) as connection:
            now, _ = await training_groups.get_high_water_mark(connection)
            page = await training_groups.list_groups(connection, build_group_query(data), now, after, GROUP_PAGE_SIZE)
        summaries += page
        selection = group_selection.select_groups(summaries, step_size, context.config.policy)
        if selection.is_full or len(page) < GROUP_PAGE_SIZE:
            return selection
        after = (page[-1].completed_at, page[-1].id)


async def _export_step(
    context: _ExportContext, position: ExportPosition, selection: GroupSelection, on_exported: ExportCallback
) -> ExportPosition:
    loaded_groups = await load_groups(
        context.database,
        context.tenant_id,
        selection.groups,
        context.config.data.roles,
        include_quarantined=context.config.data.include_quarantined,
    )
    group_selection.check_tokenizers(
        loaded_groups.tokenizer_counts, context.policy.tokenizer_sha256, context.config.policy
    )
    number = position.step + 1
    exported_step, state = await asyncio.to_thread(_build_step, context, loaded_groups, position, number)
    file = step_path(context.folder, number)
    await asyncio.to_thread(write_step, file, exported_step)
    position_after = replace(position, step=number, last_group=selection.last_group, state={**position.state, **state})
    _write_position(context.folder, position_after)
    tokens = sum(int(row.loss_mask.sum()) for row in exported_step.rows)
    on_exported(
        ExportedFile(file, len(selection.groups), len(exported_step.rows), tokens, exported_step.optimizer_steps)
    )
    return position_after


def _build_step(
    context: _ExportContext, loaded_groups: LoadedGroups, position: ExportPosition, number: int
) -> tuple[ExportedStep, Mapping[str, Any]]:
    config = context.config
    rng = np.random.default_rng([config.learner.seed, number])
    prepared_step = prepare_step(
        context.pipeline,
        config.learner,
        loaded_groups.groups,
        position.state,
        rng,
        rollout_stats=_rollout_stats(loaded_groups),
    )
    exported_step = ExportedStep(
        step=number,
        policy=config.policy,
        policy_sha256=context.policy.sha256,
        tokenizer_sha256=context.policy.tokenizer_sha256,
        loss_spec=context.loss_spec,
        learner=export_learner_settings(config),
        optimizer_steps=len(prepared_step.optimizer_steps),
        rows=tuple(iter_exported_rows(prepared_step, config.policy)),
    )
    return exported_step, prepared_step.state


def _rollout_stats(loaded_groups: LoadedGroups) -> dict[UUID, dict[str, float]]:
    return {
        run: {
            "turns": float(f.turns),
            "tokens": float(f.tokens),
            "usd": f.cost_usd,
            "tool_calls": float(f.tool_call_count),
        }
        for run, f in loaded_groups.rollout_stats.items()
    }


def _read_position(folder: Path) -> ExportPosition:
    file = folder / POSITION_FILE
    if not file.is_file():
        return ExportPosition()
    stored = json.loads(file.read_bytes())
    last_group = stored["after"]
    return ExportPosition(
        stored["step"], last_group and (datetime.fromisoformat(last_group[0]), UUID(last_group[1])), stored["state"]
    )


def _write_position(folder: Path, position: ExportPosition) -> None:
    last_group = position.last_group and (position.last_group[0].isoformat(), str(position.last_group[1]))
    _write_json(folder / POSITION_FILE, {"step": position.step, "after": last_group, "state": dict(position.state)})


def _write_json(file: Path, value: Mapping[str, Any]) -> None:
    aside = file.with_name(f".{file.name}")
    aside.write_text(json.dumps(value))
    aside.replace(file)
