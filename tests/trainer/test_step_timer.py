"""How long the parts of a step take, by what a job says of itself."""

from offing_trainer.job.step_timer import StepTimer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_belongs_to_what_was_said_before_it_and_all_of_it_is_counted() -> None:
    clock = Clock()
    timing = StepTimer(clock)
    story = [("choosing", 1.0), ("reading", 2.0), ("forward", 3.0), ("backward", 4.0), ("optimizer", 5.0)]
    for phase, seconds in [("begun", 0.5), *story, ("moved", 6.0), ("saving", 7.0), ("saved", 0.25)]:
        timing.enter_phase(phase)
        clock.now += seconds
    assert timing.take_metrics() == {
        "seconds_choose": 1, "seconds_read": 2, "seconds_forward": 3, "seconds_update": 9, "seconds_save": 7,
        "seconds_other": 6.5, "seconds_commit": 0.25, "seconds_step": 28.75,
    }  # fmt: skip


def test_what_follows_the_metrics_counts_for_the_next_ones() -> None:
    clock = Clock()
    timing = StepTimer(clock)
    timing.enter_phase("saved")
    timing.take_metrics()
    clock.now += 2
    timing.enter_phase("committed")
    clock.now += 1
    assert timing.take_metrics() == {"seconds_commit": 2, "seconds_other": 1, "seconds_step": 3}
