"""The folders and the lock of one home."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.local.datadir import Door, Layout, Lock, Note, layout, prepare, read_note, write_note


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Layout]:
    made = prepare(tmp_path / "home")
    yield made
    shutil.rmtree(made.run)


def test_every_folder_is_private(paths: Layout) -> None:
    for folder in (paths.home, paths.run, paths.logs, paths.postgres_sockets):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("base", ["short", "a-very-long-name-for-a-folder-of-sockets"])
def test_sockets_have_a_short_path_however_deep_the_home_is(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / base
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 8)
    assert len(str(layout(deep).keyvalue_socket)) < 100
    assert layout(deep).run != layout(deep / "other").run


def test_a_run_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    trap = layout(tmp_path / "home").run
    trap.symlink_to(elsewhere)
    with pytest.raises(Conflict, match="belongs to somebody else"):
        prepare(tmp_path / "home")
    trap.unlink()


def test_a_home_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput) as raised:
        prepare(tmp_path / "file" / "home")
    assert raised.value.field == "OFFING_HOME"


def test_one_holder_at_a_time_and_everyone_sees_who(paths: Layout) -> None:
    first, second = Lock(paths.lock), Lock(paths.lock)
    assert second.holder() is None
    assert first.acquire()
    assert not second.acquire()
    assert second.holder() == os.getpid()
    first.release()
    assert second.acquire()
    second.release()


def test_a_note_without_its_holder_counts_as_none(paths: Layout) -> None:
    lock, note = Lock(paths.lock), Note(os.getpid(), str(paths.run), ("valkey",), "http://127.0.0.1:1")
    assert lock.acquire()
    write_note(paths, note)
    assert read_note(paths) == note
    lock.release()
    assert read_note(paths) is None


def test_the_door_closes_only_behind_the_last_guest(paths: Layout) -> None:
    with Door(paths.door) as host:
        with Door(paths.door) as guest:
            guest.enter()
            assert not host.close_behind_the_last()
        assert host.close_behind_the_last()
