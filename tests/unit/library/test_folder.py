"""Which files of a folder are taken."""

from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.library.folder import list_documents


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")


def test_documents_are_found_in_every_folder_and_others_counted(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "sub/deep/a.PDF", "sub/c.docx", "sub/x.py", "y.py", "LICENSE")
    listing = list_documents(tmp_path)
    assert listing.names == ("b.md", "sub/c.docx", "sub/deep/a.PDF")
    assert listing.skipped == {".py": 2, "": 1}


def test_hidden_and_package_folders_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, ".git/a.md", "node_modules/p/README.md", ".hidden.md", "kept.md")
    assert list_documents(tmp_path).names == ("kept.md",)


def test_links_that_leave_the_folder_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "in/a.md", "out/b.md")
    (tmp_path / "in/inside.md").symlink_to(tmp_path / "in/a.md")
    (tmp_path / "in/outside.md").symlink_to(tmp_path / "out/b.md")
    (tmp_path / "in/folder").symlink_to(tmp_path / "out")
    (tmp_path / "in/broken.md").symlink_to(tmp_path / "none")
    assert list_documents(tmp_path / "in").names == ("a.md", "inside.md")


def test_a_walk_is_bounded_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md", "c.md")
    listing = list_documents(tmp_path, max_files=2)
    assert len(listing.names) == 2
    assert listing.truncated


@pytest.mark.parametrize("name", ["missing", "file.md"])
def test_what_is_no_folder_is_rejected(tmp_path: Path, name: str) -> None:
    write(tmp_path, "file.md")
    with pytest.raises(InvalidInput, match="docs"):
        list_documents(tmp_path / name)
