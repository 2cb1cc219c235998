"""Versions of graphs: the hash of their files."""

from pathlib import Path

import pytest

from offing.sdk import compute_content_hash


def test_a_version_depends_on_names_and_bytes_of_every_folder(tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    for folder in (own, shared):
        folder.mkdir()
        (folder / "graph.py").write_text("graph = 1\n")
    versions = [compute_content_hash(own), compute_content_hash(own, shared)]
    (shared / "graph.py").write_text("graph = 2\n")
    versions.append(compute_content_hash(own, shared))
    (shared / "graph.py").rename(shared / "state.py")
    versions.append(compute_content_hash(own, shared))
    assert len(set(versions)) == 4


def test_a_folder_that_does_not_exist_has_no_version(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        compute_content_hash(tmp_path, tmp_path / "missing")
