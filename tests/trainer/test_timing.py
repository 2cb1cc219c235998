"""How long the parts of a step take, by what a job says of itself."""

from offing_trainer.job.timing import Timing


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_belongs_to_what_was_said_before_it_and_all_of_it_is_counted() -> None:
    clock = Clock()
    timing = Timing(clock)
    story = [("choosing", 1.0), ("reading", 2.0), ("forward", 3.0), ("backward", 4.0), ("optimiser", 5.0)]
    for phase, seconds in [("begun", 0.5), *story, ("moved", 6.0), ("saving", 7.0), ("saved", 0.25)]:
        timing.enter(phase)
        clock.now += seconds
    assert timing.figures() == {
        "seconds_choose": 1, "seconds_read": 2, "seconds_forward": 3, "seconds_update": 9, "seconds_save": 7,
        "seconds_rest": 6.5, "seconds_commit": 0.25, "seconds_step": 28.75,
    }  # fmt: skip


def test_what_follows_the_figures_counts_for_the_next_ones() -> None:
    clock = Clock()
    timing = Timing(clock)
    timing.enter("saved")
    timing.figures()
    clock.now += 2
    timing.enter("committed")
    clock.now += 1
    assert timing.figures() == {"seconds_commit": 2, "seconds_rest": 1, "seconds_step": 3}
