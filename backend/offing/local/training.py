"""The trainer as one of our processes, where its packages are installed.

The only home of when it is started here. It does not know what a job is, nor torch.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from offing.local.datadir import Layout
from offing.local.environment import compute_environment
from offing.local.programs import Echo, OnEnd, Process, module

NEEDED = ("torch", "transformers", "numpy")

GRACE_SECONDS = 20.0
"""A job that is cut short goes on from its last step in the next process."""


def trainers(paths: Layout, environment: Mapping[str, str], echo: Echo | None, on_end: OnEnd = None) -> list[Process]:
    """The process that runs queued jobs; none where it could not, and jobs then wait and say why."""
    if any(find_spec(name) is None for name in NEEDED):
        return []
    return [
        Process(
            name="trainer",
            argv=(*module("offing.cli"), "trainer"),
            env=compute_environment(environment, "OFFING_APP_DATABASE_URL") | {"OMP_WAIT_POLICY": "PASSIVE"},
            ready_file=paths.run / "trainer.ready",
            log=paths.logs / "trainer.log",
            echo=echo,
            grace_seconds=GRACE_SECONDS,
            on_end=on_end,
        )
    ]
