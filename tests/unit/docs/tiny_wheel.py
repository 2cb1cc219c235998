"""Write small wheels. Also a build backend for the project of test_locks.py, which so needs no package to be built."""

import zipfile
from pathlib import Path
from typing import Any

REQUIRES = "Requires-Dist: tiny==1.0\n"


def write_wheel(folder: Path, name: str, more: str = "") -> Path:
    """Write version 1.0 of a package with one empty module. `more` is added to its metadata."""
    wheel, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def build_wheel(wheel_directory: str, *_: Any) -> str:
    return write_wheel(Path(wheel_directory), "project", REQUIRES).name


build_editable = build_wheel
