"""Trainer process, started where its packages are installed."""

from collections.abc import Mapping
from importlib.util import find_spec

from offing.local.child_environment import build_compute_environment
from offing.local.data_directory import DataDirectory
from offing.local.programs import ExitCallback, LineEcho, ManagedProcess, python_module_command

REQUIRED_PACKAGES = ("torch", "transformers", "numpy")

GRACE_SECONDS = 20.0
"""An interrupted job continues from its last step in the next process."""


def build_trainer_processes(
    paths: DataDirectory, environment: Mapping[str, str], echo: LineEcho | None, on_exit: ExitCallback = None
) -> list[ManagedProcess]:
    """Return the process that runs queued jobs, or none if packages are missing.

    Jobs then wait, and their status shows the reason.
    """
    if any(find_spec(name) is None for name in REQUIRED_PACKAGES):
        return []
    return [
        ManagedProcess(
            name="trainer",
            argv=(*python_module_command("offing.cli"), "trainer"),
            env=build_compute_environment(environment, "OFFING_APP_DATABASE_URL") | {"OMP_WAIT_POLICY": "PASSIVE"},
            ready_file=paths.socket_dir / "trainer.ready",
            log=paths.logs / "trainer.log",
            echo=echo,
            grace_seconds=GRACE_SECONDS,
            on_exit=on_exit,
        )
    ]
