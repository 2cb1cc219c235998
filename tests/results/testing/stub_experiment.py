"""An experiment that needs no training, for tests of what runs, stores and shows experiments.

Runs leave a line in `folder/runs`; the arm `other` fails while there is a file `folder/broken`.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.results.experiment import Arm, Curve, Experiment, Metric, Point, Size


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    with (folder / "runs").open("a") as message:
        message.write(f"{arm} {seed} {size}\n")
    if arm == "other" and (folder / "broken").exists():
        raise RuntimeError("the rig is broken")
    return curve(arm, seed)


def curve(arm: str, seed: int) -> Curve:
    """Right answers grow with steps, faster for `ours`; the second figure is not always there."""
    gain = (0.10 if arm == "ours" else 0.05) + 0.01 * seed
    late = [{}, {}, {"rounds": 6.0 - seed}, {"rounds": 5.0 - seed}, {"rounds": 4.0}]
    return Curve(arm, seed, tuple(Point(n * 10, n * 1.5, {"right": gain * n, **late[n]}) for n in range(5)))


def read(curves: Sequence[Curve]) -> list[str]:
    return [f"{len(curves)} curves were read."]


EXPERIMENT = Experiment(
    name="invented",
    title="An invented comparison",
    claim="Ours is better than the other.",
    arms={"ours": Arm("ours", "what is claimed to be better."), "other": Arm("the other", "what it is compared with.")},
    figures={"right": Metric("right answers", share=True), "rounds": Metric("rounds of right answers")},
    run=run,
    read=read,
)
