"""A trainer that applies a pipeline to a learner.

It decides which columns are computed, by which weights, and when.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import numpy as np

from offing.core.training_rows import TrainingRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupSummary
from offing_trainer.batch import Floats
from offing_trainer.config import TrainConfig
from offing_trainer.job.contract import PhaseCallback, TrainingStepResult
from offing_trainer.job.group_loader import LoadedGroups, load_groups, load_reference_answers, load_rollouts
from offing_trainer.job.lineage import JobPolicies
from offing_trainer.job.text_loader import TextRowCache, add_text_rows
from offing_trainer.learner.contract import ForwardModel, ForwardResult, Learner
from offing_trainer.learner.contract import OptimizerStepResult as Moved
from offing_trainer.pipeline import Pipeline, RequiredColumns, build_job_pipeline, compute_required_columns
from offing_trainer.plugin import REPLAY_TABLE
from offing_trainer.reference_answers import COLUMNS as ANSWER_COLUMNS
from offing_trainer.reference_answers import AnswerTokenizer, build_reference_rows, compute_answer_columns
from offing_trainer.text_rows import ChatTokenizer
from offing_trainer.training_step import (
    USED,
    MetricAccumulator,
    PreparedStep,
    ViewedGroups,
    apply_view,
    build_loss,
    compute_advantages,
    compute_token_weights,
    extract_columns,
)

NOT_FINITE = "not_finite"

REF_LOGPROBS_COLUMN = "ref_logprobs"


class PolicyTokenizer(ChatTokenizer, AnswerTokenizer, Protocol):
    """The policy's tokenizer, for SFT text and for reference answers."""


@dataclass(slots=True)
class PipelineTrainer:
    """`contract.JobTrainer` for a pipeline of plug-ins."""

    config: TrainConfig
    pipeline: Pipeline
    open_policy: Callable[[], Learner]
    """Opens the initial policy of the job."""
    open_reference: Callable[[Learner], ForwardModel]
    """Opens the reference policy beside the learner when it is first needed."""
    open_tokenizer: Callable[[], PolicyTokenizer]
    """Opens the tokenizer when it is first needed."""
    learner: Learner
    reference_model: ForwardModel | None = None
    text_cache: TextRowCache = field(default_factory=TextRowCache)

    def load(self, folder: Path | None) -> None:
        if folder is None:
            self.learner, self.reference_model = self.open_policy(), None
        else:
            self.learner.load(folder)

    def save(self, folder: Path, moments_of: Path | None = None) -> None:
        self.learner.save(folder, moments_of)

    def export_policy(self, folder: Path) -> None:
        self.learner.export_policy(folder, self.config.learner.kind)

    async def load_groups(
        self, database: Database, tenant_id: UUID, summaries: Sequence[GroupSummary], state: Mapping[str, Any]
    ) -> LoadedGroups:
        """Load recorded tokens. If no plug-in needs their logprobs, also load text of rollouts without tokens."""
        roles, include_quarantined = self.config.data.roles, self.config.data.include_quarantined
        groups = await load_groups(database, tenant_id, summaries, roles, include_quarantined=include_quarantined)
        if REPLAY_TABLE in self.pipeline.state_tables:
            runs = _list_replay_runs(state, summaries)
            groups = replace(
                groups,
                replay_candidates=await load_rollouts(
                    database, tenant_id, runs, roles, include_quarantined=include_quarantined
                ),
            )
        if groups.turns_without_token_ids and trains_on_text(self.pipeline, self.config.learner.mode):
            groups = await add_text_rows(database, tenant_id, groups, roles, self.open_tokenizer(), self.text_cache)
        if needs_reference_answers(self.pipeline):
            groups = replace(
                groups,
                reference_answers=await load_reference_answers(
                    database, tenant_id, {head.task_id for head in summaries}
                ),
            )
        return groups

    def train_step(
        self, groups: LoadedGroups, state: Mapping[str, Any], step: int, progress: float, on_phase: PhaseCallback
    ) -> TrainingStepResult:
        rng = np.random.default_rng([self.config.learner.seed, step])
        viewed_groups = apply_view(
            self.pipeline,
            groups.groups,
            state,
            rng,
            rollout_stats=_rollout_stats(groups),
            replay_candidates=groups.replay_candidates,
        )
        prepared_step = self._compute_token_weights(
            self._compute_advantages(viewed_groups, groups.reference_answers, rng, progress, on_phase), on_phase
        )
        results, tally = self._update_weights(prepared_step, on_phase)
        metrics = {
            **prepared_step.metrics,
            **tally.compute_metrics(),
            **_optimizer_metrics(results),
            "turns_without_token_ids": float(groups.turns_without_token_ids),
        }
        ledger_reasons = _find_ledger_reasons(
            prepared_step, nothing_moved=bool(results) and all(one.skipped for one in results)
        )
        return TrainingStepResult(
            {k: v for k, v in metrics.items() if np.isfinite(v)}, ledger_reasons, prepared_step.state
        )

    def _compute_advantages(
        self,
        viewed_groups: ViewedGroups,
        reference_answers: Mapping[str, str],
        rng: np.random.Generator,
        progress: float,
        on_phase: PhaseCallback,
    ) -> PreparedStep:
        on_phase("forward")
        early = self._required_columns.before_selection - ANSWER_COLUMNS
        columns = self._compute_columns(
            viewed_groups.rows, early, lambda forwarded, names: extract_columns(viewed_groups.batch, forwarded, names)
        )
        if needs_reference_answers(self.pipeline):
            columns |= self._compute_answer_columns(viewed_groups, reference_answers)
        return compute_advantages(
            self.pipeline, viewed_groups, columns, rng, progress=progress, learner_config=self.config.learner
        )

    def _compute_answer_columns(
        self, viewed_groups: ViewedGroups, reference_answers: Mapping[str, str]
    ) -> dict[str, Floats]:
        """Forward one row for each context in which a turn began."""
        introduction = self.config.data.answer_prefix
        reference_rows = build_reference_rows(
            viewed_groups.batch, viewed_groups.rows, reference_answers, introduction, self.open_tokenizer()
        )
        return compute_answer_columns(
            viewed_groups.batch, reference_rows, self.learner.forward(reference_rows.rows).logprobs
        )

    def _compute_token_weights(self, prepared_step: PreparedStep, on_phase: PhaseCallback) -> PreparedStep:
        late = self._required_columns.after_selection
        columns = self._compute_columns(
            prepared_step.list_active_rows,
            late,
            lambda forwarded, names: extract_columns(prepared_step.batch, forwarded, names, prepared_step.active_rows),
        )
        on_phase("forwarded")
        return compute_token_weights(self.pipeline, prepared_step, columns)

    @property
    def _required_columns(self) -> RequiredColumns:
        return compute_required_columns(self.pipeline, self.config.learner.mode)

    def _compute_columns(
        self,
        rows: Sequence[TrainingRow],
        names: frozenset[str],
        extract: Callable[[ForwardResult, frozenset[str]], Mapping[str, Any]],
    ) -> dict[str, Any]:
        policy_names, reference_names = names - {REF_LOGPROBS_COLUMN}, names & {REF_LOGPROBS_COLUMN}
        columns_by_name: dict[str, Any] = {}
        if policy_names:
            columns_by_name |= extract(self.learner.forward(rows), policy_names)
        if reference_names:
            self.reference_model = self.reference_model or self.open_reference(self.learner)
            columns_by_name |= extract(self.reference_model.forward(rows), reference_names)
        return columns_by_name

    def _update_weights(
        self, prepared_step: PreparedStep, on_phase: PhaseCallback
    ) -> tuple[list[Moved], MetricAccumulator]:
        results, tally = list[Moved](), MetricAccumulator()
        for nth in range(len(prepared_step.optimizer_steps)):
            rows = prepared_step.step_rows(nth)
            if not rows:
                continue
            on_phase("backward")
            self.learner.forward_backward(rows, build_loss(self.pipeline, prepared_step, nth, tally))
            on_phase("optimizer")
            results.append(self.learner.optim_step())
        on_phase("moved")
        return results, tally


def open_trainer(config: TrainConfig, job_policies: JobPolicies) -> PipelineTrainer:
    """Open the policy's weights. Raises InvalidInput, and for an invalid pipeline before it opens them."""
    pipeline = build_job_pipeline(config)
    from offing_trainer.learner.local_learner import LocalLearner, open_learner
    from offing_trainer.learner.template_tokenizer import TemplateTokenizer

    start, base = Path(job_policies.start.uri), None if job_policies.base is None else Path(job_policies.base.uri)
    reference = Path(job_policies.reference.uri) if job_policies.reference else start
    under = (
        base
        if job_policies.reference is None
        else job_policies.reference_base and Path(job_policies.reference_base.uri)
    )
    settings = config.learner
    reference_settings = settings.model_copy(update={"critic": None, "kind": "lora" if under else "full"})

    def opened() -> Learner:
        return open_learner(start, settings, base=base)

    def opened_reference(learner: Learner) -> ForwardModel:
        under_adapter = learner.without_adapter() if isinstance(learner, LocalLearner) else None
        if under_adapter is not None and reference == under_adapter.folder:
            return under_adapter
        return open_learner(reference, reference_settings, base=under)

    return PipelineTrainer(
        config,
        pipeline,
        opened,
        opened_reference,
        cache(lambda: TemplateTokenizer(base or start)),
        opened(),
    )


def trains_on_text(pipeline: Pipeline, mode: str) -> bool:
    """Return whether tokens without recorded logprobs can be trained."""
    return not (
        pipeline.needs_column("behavior_logprobs") or (mode == "bypass" and pipeline.needs_column("old_logprobs"))
    )


def needs_reference_answers(pipeline: Pipeline) -> bool:
    """Return whether plug-ins need the probability of reference answers."""
    return any(pipeline.needs_column(name) for name in ANSWER_COLUMNS)


def _list_replay_runs(state: Mapping[str, Any], summaries: Sequence[GroupSummary]) -> list[UUID]:
    """List the runs that may be replayed with these groups."""
    table: Mapping[str, Sequence[str]] = state.get(REPLAY_TABLE, {})
    return [UUID(run) for task in sorted({str(head.task_id) for head in summaries}) for run in table.get(task, ())]


def _rollout_stats(groups: LoadedGroups) -> dict[UUID, dict[str, float]]:
    return {
        run: {
            "turns": float(costs.turns),
            "tokens": float(costs.tokens),
            "usd": costs.cost_usd,
            "tool_calls": float(costs.tool_call_count),
        }
        for run, costs in groups.rollout_stats.items()
    }


def _find_ledger_reasons(prepared_step: PreparedStep, *, nothing_moved: bool) -> dict[UUID, str]:
    """Return the ledger reasons. `nothing_moved` means that every optimizer step was skipped."""
    return {
        UUID(run): NOT_FINITE if nothing_moved and reason == USED else reason
        for run, reason in prepared_step.ledger_reasons.items()
    }


def _optimizer_metrics(results: Sequence[Moved]) -> dict[str, float]:
    norms = [one.grad_norm for one in results if not one.skipped]
    return {
        "optimizer_steps": float(len(results)),
        "skipped": float(sum(one.skipped for one in results)),
        **({"grad_norm": float(np.mean(norms)), "lr": results[-1].learning_rate} if norms else {}),
    }
