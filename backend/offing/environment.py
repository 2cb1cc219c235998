"""The environment of this process. No other module reads or changes `os.environ`.

`offing.settings` reads the settings, and `offing.local.child_environment` selects what child processes get.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

VARIABLES: Mapping[str, str] = os.environ
"""The current variables of this process."""

READY_FILE_VARIABLE = "OFFING_READY_FILE"
"""Variable that names the file in which a process that `offing up` started reports that it is ready."""


def select_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of the named variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def find_ready_file() -> Path | None:
    """Return the ready file of this process. `None` means that no supervisor waits for it."""
    path = os.environ.get(READY_FILE_VARIABLE)
    return Path(path) if path else None


def set_variable(name: str, value: str) -> None:
    """Set a variable for a library that reads it in this process."""
    os.environ[name] = value


def set_default(name: str, value: str) -> None:
    """Set a variable for a library that reads it in this process, unless it is set."""
    os.environ.setdefault(name, value)


def read_raw_variables() -> Mapping[bytes, bytes]:
    """Return the undecoded variables. Comparing them takes half a microsecond; decoding each value takes thirty."""
    return vars(os.environ)["_data"]
