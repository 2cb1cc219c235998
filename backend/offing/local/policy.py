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

POLICIES = "policies"
"""In the home: where training jobs put versions when no other folder is named."""

GRACE_SECONDS = 30.0
"""More than it takes to answer what it has begun."""


def policies_folder(settings: Settings) -> Path:
    """Where versions lie; it need not be there."""
    return settings.policies or settings.home / POLICIES


def with_engine(settings: Settings, paths: Layout, name: str) -> Settings:
    """`settings` with the address of an engine of our own; unchanged without policies, or with another's address.

    Where no folder of policies is named, the one in the home is taken, if training has made it and torch is here.
    """
    folder = policies_folder(settings)
    if settings.policies is None and folder.is_dir() and find_spec("torch") is not None:
        settings = settings.model_copy(update={"policies": folder})
    if settings.policies is None or settings.engine_url:
        return settings
    return settings.model_copy(update={"engine_url": f"unix://{_socket(paths, name)}"})


def engines(
    settings: Settings, paths: Layout, environment: Mapping[str, str], echo: Echo | None, name: str
) -> list[Process]:
    """The engine to start, if `settings` came from `with_engine` of the same name and have one of our own."""
    socket = _socket(paths, name)
    if settings.policies is None or settings.engine_url != f"unix://{socket}":
        return []
    return [
        Process(
            name=name,
            argv=(*module("offing.cli"), "engine", "serve", "--socket", str(socket)),
            env=compute_environment(environment, "OFFING_ENGINE_KEY")
            | {"OFFING_POLICIES": str(settings.policies.resolve())},
            ready_file=paths.run / f"{name}.ready",
            log=paths.logs / "engine.log",
            echo=echo,
            grace_seconds=GRACE_SECONDS,
        )
    ]


def _socket(paths: Layout, name: str) -> Path:
    return paths.run / f"{name}.sock"
