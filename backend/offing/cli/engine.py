"""`offing engine`: the policy engine and small policies for it.

The work is in `offing_engine`, which needs torch.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from offing import environment
from offing.cli.options import ServeEngineOptions
from offing.core.errors import InvalidInput, Unavailable
from offing.settings import load_settings
from offing.telemetry.logs import setup_logs


def serve_engine(options: ServeEngineOptions) -> int:
    """Run the engine in this process until it is stopped, and return the exit code."""
    _require_torch()
    # torch reads this when it is imported. Threads that spin while waiting make a busy machine twenty
    # times slower.
    environment.set_default("OMP_WAIT_POLICY", "PASSIVE")
    setup_logs("console" if sys.stderr.isatty() else "json")
    from offing_engine.process import ServeConfig, list_policy_folders, parse_policy_args
    from offing_engine.process import serve_engine as run
    from offing_engine.scheduler import SchedulerLimits

    folder = options.policy_dir or load_settings().policy_dir
    policies = {**(list_policy_folders(folder) if folder else {}), **parse_policy_args(options.policies)}
    if not policies and folder is None:
        remedy = "Use --policy NAME@VERSION=FOLDER, or --policy-dir FOLDER with one subfolder per version."
        raise InvalidInput("--policy", "no policy is specified", remedy)
    return run(
        ServeConfig(
            policies,
            options.socket,
            options.host,
            options.port,
            environment.VARIABLES.get("OFFING_ENGINE_KEY"),
            environment.VARIABLES.get("OFFING_ALLOW_REMOTE") == "1",
            options.device,
            options.threads,
            SchedulerLimits(max_rows=options.max_rows, max_context_tokens=options.max_context_tokens),
            environment.find_ready_file(),
            folder,
        )
    )


def create_random_policy(
    folder: Path, size: Literal["tiny", "small"], byte_level: bool, vocabulary_file: Path | None, seed: int
) -> int:
    """Create a small policy with random weights."""
    _require_torch()
    from offing_engine.random_policy import create_random_policy as make

    make(folder, None if byte_level else _read_vocabulary(vocabulary_file), size=size, seed=seed)
    print(folder)
    return 0


def _read_vocabulary(file: Path | None) -> Sequence[str]:
    if file is None:
        from offing.tools.environment import DEFAULT_ENVIRONMENT, ENVIRONMENTS

        return ENVIRONMENTS.get_named(DEFAULT_ENVIRONMENT, "--vocabulary").vocabulary
    if not file.is_file():
        raise InvalidInput(
            "--vocabulary", f"{file} is not a file", "Use a text file of words that are separated by whitespace."
        )
    return file.read_text(encoding="utf-8").split()


def _require_torch() -> None:
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise Unavailable(f"{' and '.join(missing)} must be installed. Run: pip install 'offing[train]'")
