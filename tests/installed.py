"""A third party's package, installed for one test."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
    requires: str = "",
) -> None:
    """Install a distribution with these entry points by group and these modules by name, until the test ends."""
    site = folder / f"site of {name}"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
    (info / "entry_points.txt").write_text(render_entry_points(entry_points))
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)
        monkeypatch.setitem(sys.modules, module, sys)  # so that it is removed again after the test
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])


def render_entry_points(entry_points: Mapping[str, Mapping[str, str]]) -> str:
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in named.items())
        for group, named in entry_points.items()
    )
