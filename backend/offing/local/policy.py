"""The policy engine as one of our processes, for whoever has a folder of policies.

The only home of when it is started here and where it listens. It does not know what a policy is, nor torch.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from offing.local.datadir import Layout
from offing.local.environment import compute_environment
from offing.local.programs import Echo, Process, module
from offing.settings import Settings

ENGINE = "engine"
"""Its name among the programs."""

POLICIES = "policies"
"""In the home: where training jobs put versions when no other folder is named."""

GRACE_SECONDS = 30.0
"""More than it takes to answer what it has begun."""


def policies_folder(settings: Settings) -> Path:
    """Where versions lie; it need not be there."""
    return settings.policies or settings.home / POLICIES


def has_policies(settings: Settings) -> bool:
    """Whether there is a folder to serve: one that is named, or the one in the home, if training has made it."""
    return settings.policies is not None or (policies_folder(settings).is_dir() and _can_serve())


def with_engine(settings: Settings, paths: Layout) -> Settings:
    """`settings` with the address of this home's engine, whoever runs it, also when there are no policies yet.

    Unchanged with another's address, and where no engine could run.
    """
    if settings.engine_url or (settings.policies is None and not _can_serve()):
        return settings
    return settings.model_copy(update={"engine_url": f"unix://{socket_of(paths)}"})


def is_own(settings: Settings, paths: Layout) -> bool:
    """Whether `settings`, from `with_engine`, name this home's engine."""
    return settings.engine_url == f"unix://{socket_of(paths)}"


def engine_program(settings: Settings, paths: Layout, environment: Mapping[str, str], echo: Echo | None) -> Process:
    """The engine of a home."""
    return Process(
        name=ENGINE,
        argv=(*module("offing.cli"), "engine", "serve", "--socket", str(socket_of(paths))),
        env=compute_environment(environment, "OFFING_ENGINE_KEY")
        | {"OFFING_POLICIES": str(policies_folder(settings).resolve())},
        ready_file=paths.run / f"{ENGINE}.ready",
        log=paths.logs / "engine.log",
        echo=echo,
        grace_seconds=GRACE_SECONDS,
    )


def socket_of(paths: Layout) -> Path:
    """Where it listens."""
    return paths.run / f"{ENGINE}.sock"


def _can_serve() -> bool:
    return find_spec("torch") is not None
