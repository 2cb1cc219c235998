"""Process of the policy engine, started where there is a folder of policy versions."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from offing.local.child_environment import build_compute_environment
from offing.local.data_directory import DataDirectory
from offing.local.programs import LineEcho, ManagedProcess, python_module_command
from offing.settings import Settings

ENGINE_PROGRAM = "engine"
"""Name of the program in the stack."""

POLICY_FOLDER = "policies"
"""Folder in the data directory for policy versions of training jobs, unless another one is configured."""

GRACE_SECONDS = 30.0
"""Longer than the engine needs to finish its requests."""


def get_policy_dir(settings: Settings) -> Path:
    """Return the folder of policy versions. It may not exist."""
    return settings.policy_dir or settings.home / POLICY_FOLDER


def has_policies(settings: Settings) -> bool:
    """Return whether a folder is configured, or training has created the one in the data directory."""
    return settings.policy_dir is not None or (get_policy_dir(settings).is_dir() and _can_serve_policies())


def with_engine_url(settings: Settings, paths: DataDirectory) -> Settings:
    """Return `settings` with the URL of this data directory's engine.

    It is also set if there are no policy versions yet. An external URL is kept. Where no engine can
    run, the settings are unchanged.
    """
    if settings.engine_url or (settings.policy_dir is None and not _can_serve_policies()):
        return settings
    return settings.model_copy(update={"engine_url": f"unix://{engine_socket(paths)}"})


def is_own_engine(settings: Settings, paths: DataDirectory) -> bool:
    """Return whether `settings`, from `with_engine_url`, name the engine of this data directory."""
    return settings.engine_url == f"unix://{engine_socket(paths)}"


def build_engine_process(
    settings: Settings, paths: DataDirectory, environment: Mapping[str, str], echo: LineEcho | None
) -> ManagedProcess:
    """Build the process of the policy engine."""
    return ManagedProcess(
        name=ENGINE_PROGRAM,
        argv=(*python_module_command("offing.cli"), "engine", "serve", "--socket", str(engine_socket(paths))),
        env=build_compute_environment(environment, "OFFING_ENGINE_KEY")
        | {"OFFING_POLICY_DIR": str(get_policy_dir(settings).resolve())},
        ready_file=paths.socket_dir / f"{ENGINE_PROGRAM}.ready",
        log=paths.logs / "engine.log",
        echo=echo,
        grace_seconds=GRACE_SECONDS,
    )


def engine_socket(paths: DataDirectory) -> Path:
    """Return the path of its socket."""
    return paths.socket_dir / f"{ENGINE_PROGRAM}.sock"


def _can_serve_policies() -> bool:
    return find_spec("torch") is not None
