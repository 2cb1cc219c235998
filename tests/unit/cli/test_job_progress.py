"""How far a job is, as a terminal shows it."""

from io import StringIO
from typing import Any
from uuid import UUID

from offing.cli.job_progress import JobProgress
from offing.cli.terminal import PROGRESS_SECONDS, ProgressPrinter
from offing.storage.training_jobs import TrainingJobRow


def a_job(step: int, planned_steps: int | None, id: int = 1) -> TrainingJobRow:
    values: dict[str, Any] = dict.fromkeys(TrainingJobRow.__dataclass_fields__)
    values |= {"id": UUID(int=id), "step": step, "planned_steps": planned_steps}
    return TrainingJobRow(**values)


def test_a_job_says_its_step_of_all_and_the_minutes_left() -> None:
    progress = JobProgress()
    assert progress.describe(a_job(0, 70), "opening the policy", {}) == "step 1 of 70: opening the policy"
    progress.describe(a_job(1, 70), "committed", {"seconds_step": 5.0})
    committed = progress.describe(a_job(2, 70), "committed", {"reward": 0.25, "seconds_step": 7.0})
    assert committed == "step 2 of 70, about 7 minutes left: reward 0.25  seconds_step 7"
    assert progress.describe(a_job(2, 70), "collecting", {}) == "step 3 of 70, about 7 minutes left: collecting"


def test_another_job_begins_without_the_times_of_the_one_before() -> None:
    progress = JobProgress()
    progress.describe(a_job(1, 70), "committed", {"seconds_step": 5.0})
    assert progress.describe(a_job(0, 9, id=2), "choosing", {}) == "step 1 of 9: choosing"


def test_a_job_without_a_plan_says_its_step_alone() -> None:
    assert JobProgress().describe(a_job(4, None), "reading", {}) == "step 5: reading"


def test_a_job_that_needs_more_steps_than_planned_never_says_step_9_of_8() -> None:
    assert JobProgress().describe(a_job(9, 8), "committed", {"reward": 1.0}) == ("step 9 of 9: reward 1")


def test_without_a_terminal_progress_is_printed_every_half_minute_and_every_event() -> None:
    out, now = StringIO(), [0.0]
    printer = ProgressPrinter(out, lambda: now[0])
    for second in range(0, 100, 5):
        now[0] = float(second)
        printer.show_progress(f"{second} rollouts")
    printer.show_status("trained")
    assert out.getvalue().split("\n") == ["30 rollouts", "60 rollouts", "90 rollouts", "trained", ""]
    assert PROGRESS_SECONDS == 30
