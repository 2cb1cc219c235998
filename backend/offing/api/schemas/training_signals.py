"""API schemas of training signals and of tasks made from runs, and their serializers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from offing.api.schemas.base import ApiModel
from offing.core.training_signal import SignalKind, TextOrigin, TrainingSignal
from offing.services.run_tasks import RunTask, TaskSet, TaskSetRequest
from offing.storage.training_signals import TrainingConsent


class TrainingSignalOut(ApiModel):
    """What a person said about a run."""

    kind: SignalKind
    id: str = Field(
        description="Id of the rating or correction, number of the report version, or seq of the input request."
    )
    given_by: str
    created_at: datetime
    report_version: int | None
    sentence_id: str | None
    value: float | None = Field(description="-1 to 1. null: it is no rating, or a comment alone.")
    text: str = Field(description="Empty for edits and responses, which are read where they are stored.")
    text_origin: TextOrigin = Field(description="Who wrote the words.")
    base_version: int | None = Field(description="For an edit: the version that was edited.")


class TrainingConsentOut(ApiModel):
    """Whether a run may be learned from."""

    may_learn: bool
    is_decided: bool = Field(description="false: the run follows `training_opt_in` of the settings.")
    decided_by: str
    decided_at: datetime | None


class TrainingConsentIn(ApiModel):
    is_allowed: bool | None = Field(description="null: as `training_opt_in` of the settings says.")


class TrainingSignalsOut(ApiModel):
    consent: TrainingConsentOut
    items: list[TrainingSignalOut]


class AnswerCorrectionIn(ApiModel):
    """The right answer of a run."""

    answer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8_000)]
    text_origin: TextOrigin = Field(default=TextOrigin.PERSON, description="Who wrote the words.")


class TasksFromRunsIn(ApiModel):
    """Which runs become tasks of which dataset. Only runs that may be learned from do."""

    dataset: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=190)] = Field(
        description="The dataset to train on. The held-out one has this name with `-held-out`."
    )
    graph: str | None = Field(default=None, max_length=200)
    tag: str | None = Field(default=None, max_length=50)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    min_rating: float = Field(default=0.5, ge=-1, le=1, description="From which mean rating an answer counts as right.")
    max_answer_chars: int = Field(default=200, ge=1, le=8_000)
    held_out_fraction: float = Field(default=0.25, ge=0, lt=1)
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    includes_follow_ups: bool = False
    is_dry_run: bool = Field(default=False, description="Store nothing, and return what would be stored.")

    def build_request(self) -> TaskSetRequest:
        return TaskSetRequest(**self.model_dump(exclude={"is_dry_run"}))


class RunTaskOut(ApiModel):
    """A task without its reference answers."""

    run_id: UUID
    question: str
    split: str
    signals: list[SignalKind] = Field(description="What it was made from.")
    has_answer: bool
    evidence_count: int
    criterion_count: int


class TaskSetOut(ApiModel):
    id: UUID | None = Field(description="null: it was a dry run.")
    dataset: str
    held_out_dataset: str
    train_count: int
    held_out_count: int
    new_count: int
    left_out: dict[str, int] = Field(description="Number of selected runs by the reason why they are no task.")
    tasks: list[RunTaskOut]


def serialize_signal(signal: TrainingSignal) -> TrainingSignalOut:
    return TrainingSignalOut(
        kind=signal.kind, id=signal.id, given_by=signal.given_by, created_at=signal.created_at,
        report_version=signal.report_version, sentence_id=signal.sentence_id, value=signal.value, text=signal.text,
        text_origin=signal.text_origin, base_version=signal.base_version,
    )  # fmt: skip


def serialize_consent(consent: TrainingConsent) -> TrainingConsentOut:
    return TrainingConsentOut(
        may_learn=consent.may_learn, is_decided=consent.is_decided, decided_by=consent.decided_by,
        decided_at=consent.decided_at,
    )  # fmt: skip


def serialize_task_set(request: TaskSetRequest, task_set: TaskSet) -> TaskSetOut:
    return TaskSetOut(
        id=task_set.id, dataset=request.dataset, held_out_dataset=request.held_out_dataset,
        train_count=len(task_set.list_split("train")), held_out_count=len(task_set.list_split("held_out")),
        new_count=task_set.new_count, left_out=task_set.count_left_out(),
        tasks=[_serialize_task(one) for one in task_set.tasks],
    )  # fmt: skip


def _serialize_task(task: RunTask) -> RunTaskOut:
    spec = task.spec
    return RunTaskOut(
        run_id=task.run_id, question=spec.question, split=spec.split, signals=[one.kind for one in task.signals],
        has_answer=spec.answers is not None, evidence_count=len(spec.evidence), criterion_count=len(spec.rubric),
    )  # fmt: skip
