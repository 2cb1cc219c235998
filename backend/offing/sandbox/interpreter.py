"""Which files of this machine make up the Python that confined code runs under.

The only home of their places inside. What was installed beside the standard library is left out: it is nobody's
business there, and may hold more than code.
"""

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = "/python"
"""Where it lies inside."""

PROGRAM = f"{ROOT}/bin/python3"

LIBRARIES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32")
LINKS = ("/lib", "/lib32", "/lib64", "/libx32")
"""Of the system: links into the folders above, or folders of their own."""

SHARED = ("/usr", "/usr/local")
"""Prefixes under which other programs have their libraries, too."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Files and folders by their places inside, and places that must look empty."""

    shown: tuple[tuple[str, str], ...]
    """Real path and place, outer places first."""
    hidden: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """Target and place of links."""


def interpreter() -> Interpreter:
    """Of the Python that we run under; of its base where that is a virtual environment."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefix, standard = Path(sys.base_prefix), Path(sysconfig.get_paths(vars={"base": sys.base_prefix})["stdlib"])
    shown = [(path, path) for path in LIBRARIES if os.path.isdir(path)]
    shown += [(path, path) for path in LINKS if os.path.isdir(path) and not os.path.islink(path)]
    shown.append((program, PROGRAM))
    inside = f"{ROOT}/lib/{standard.name}"
    if str(prefix) in SHARED:
        shown.append((str(standard), inside))
        shown += [(str(one), f"{ROOT}/lib/{one.name}") for one in sorted((prefix / "lib").glob("libpython*.so*"))]
    else:
        shown.append((str(standard.parent), f"{ROOT}/lib"))
    hidden = tuple(f"{inside}/{name}" for name in ("site-packages", "dist-packages") if (standard / name).is_dir())
    links = tuple((os.readlink(path), path) for path in LINKS if os.path.islink(path))
    return Interpreter(tuple(shown), hidden, links)
