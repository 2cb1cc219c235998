"""Find the files of this machine that make up the Python of sandboxed code.

Packages installed next to the standard library are left out, because they may contain more than code.
"""

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

MOUNT_ROOT = "/python"
"""Path of the interpreter in the sandbox."""

PROGRAM_PATH = f"{MOUNT_ROOT}/bin/python3"

LIBRARY_DIRS = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32")
LIBRARY_LINKS = ("/lib", "/lib32", "/lib64", "/libx32")
"""System folders that are links into the folders above, or separate folders."""

SHARED_PREFIXES = ("/usr", "/usr/local")
"""Prefixes under which other programs have their libraries, too."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Files and folders by their paths in the sandbox, and paths that must be empty."""

    mounts: tuple[tuple[str, str], ...]
    """Real path and path in the sandbox, outer paths first."""
    hidden_paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """Target and path of links."""


def find_interpreter() -> Interpreter:
    """Return the interpreter that runs this process, or its base in a virtual environment."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefix, standard = Path(sys.base_prefix), Path(sysconfig.get_paths(vars={"base": sys.base_prefix})["stdlib"])
    mounts = [(path, path) for path in LIBRARY_DIRS if os.path.isdir(path)]
    mounts += [(path, path) for path in LIBRARY_LINKS if os.path.isdir(path) and not os.path.islink(path)]
    mounts.append((program, PROGRAM_PATH))
    inside = f"{MOUNT_ROOT}/lib/{standard.name}"
    if str(prefix) in SHARED_PREFIXES:
        mounts.append((str(standard), inside))
        mounts += [
            (str(one), f"{MOUNT_ROOT}/lib/{one.name}") for one in sorted((prefix / "lib").glob("libpython*.so*"))
        ]
    else:
        mounts.append((str(standard.parent), f"{MOUNT_ROOT}/lib"))
    hidden = tuple(f"{inside}/{name}" for name in ("site-packages", "dist-packages") if (standard / name).is_dir())
    links = tuple((os.readlink(path), path) for path in LIBRARY_LINKS if os.path.islink(path))
    return Interpreter(tuple(mounts), hidden, links)
