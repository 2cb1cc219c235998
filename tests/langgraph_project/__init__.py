"""A LangGraph project in the structure of LangGraph's template, and its copies for tests."""

import shutil
from pathlib import Path

PROJECT = Path(__file__).parent


def copy_project(folder: Path) -> Path:
    """Return a copy of the project in a folder."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", "/__init__.py"))
    (folder / "__init__.py").unlink()
    return folder


def edit(project: Path, old: str, new: str, file: str = "src/agent/graph.py") -> None:
    """Replace a text in a file of the project."""
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
