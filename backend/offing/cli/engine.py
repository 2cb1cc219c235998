"""`offing engine`: the policy engine and small policies for it. The work is in `offing_engine`, which needs torch."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from offing.core.errors import InvalidInput, Unavailable
from offing.settings import load_settings
from offing.telemetry.logs import setup_logs


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `offing engine serve` was told."""

    policies: Path | None
    policy: Sequence[str]
    unix: Path | None
    host: str
    port: int
    device: str | None
    threads: int | None
    most_rows: int
    most_context: int


def serve(wanted: Wanted) -> int:
    """Runs the engine in this process until it is told to stop."""
    _need_torch()
    # Read when torch is loaded. Waiting threads that spin make a busy machine twenty times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    setup_logs("console" if sys.stderr.isatty() else "json")
    from offing_engine.process import Serving, found_policies, named_policies
    from offing_engine.process import serve as run
    from offing_engine.scheduler import Limits

    folder = wanted.policies or load_settings().policies
    policies = {**(found_policies(folder) if folder else {}), **named_policies(wanted.policy)}
    if not policies and folder is None:
        remedy = "Use --policy NAME@VERSION=FOLDER, or --policies with a folder of such folders."
        raise InvalidInput("--policy", "no policy is named", remedy)
    ready = os.environ.get("OFFING_READY_FILE")
    return run(
        Serving(
            policies,
            wanted.unix,
            wanted.host,
            wanted.port,
            os.environ.get("OFFING_ENGINE_KEY"),
            os.environ.get("OFFING_ALLOW_REMOTE") == "1",
            wanted.device,
            wanted.threads,
            Limits(rows=wanted.most_rows, context=wanted.most_context),
            Path(ready) if ready else None,
            folder,
        )
    )


def new_policy(folder: Path, size: Literal["tiny", "small"], as_bytes: bool, words: Path | None, seed: int) -> int:
    """Makes a small policy with random weights."""
    _need_torch()
    from offing_engine.small import new_policy as make

    make(folder, None if as_bytes else _words(words), size=size, seed=seed)
    print(folder)
    return 0


def _words(file: Path | None) -> Sequence[str]:
    if file is None:
        from offing.world.compact import VOCABULARY

        return VOCABULARY
    if not file.is_file():
        raise InvalidInput("--words", f"{file} is not a file", "Name a text file of words, separated by white space.")
    return file.read_text(encoding="utf-8").split()


def _need_torch() -> None:
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise Unavailable(f"{' and '.join(missing)} cannot be found. Install them with: pip install 'offing[train]'")
