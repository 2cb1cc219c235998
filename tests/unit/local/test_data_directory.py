"""The folders and the lock of one home."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.local.data_directory import (
    DataDirectory,
    ExclusiveLock,
    SharedLock,
    StackInfo,
    locate_data_directory,
    prepare_data_directory,
    read_stack_info,
    write_stack_info,
)


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[DataDirectory]:
    created = prepare_data_directory(tmp_path / "home")
    yield created
    shutil.rmtree(created.socket_dir)


def test_every_folder_is_private(paths: DataDirectory) -> None:
    for folder in (paths.root, paths.socket_dir, paths.logs, paths.postgres_sockets):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("base", ["short", "a-very-long-name-for-a-folder-of-sockets"])
def test_sockets_have_a_short_path_however_deep_the_home_is(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / base
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 8)
    assert len(str(locate_data_directory(deep).keyvalue_socket)) < 100
    assert locate_data_directory(deep).socket_dir != locate_data_directory(deep / "other").socket_dir


def test_a_run_folder_of_another_user_is_rejected(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    trap = locate_data_directory(tmp_path / "home").socket_dir
    trap.symlink_to(elsewhere)
    with pytest.raises(Conflict, match="belongs to another user"):
        prepare_data_directory(tmp_path / "home")
    trap.unlink()


def test_a_home_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput) as raised:
        prepare_data_directory(tmp_path / "file" / "home")
    assert raised.value.field == "OFFING_HOME"


def test_one_holder_at_a_time_and_everyone_sees_who(paths: DataDirectory) -> None:
    first, second = ExclusiveLock(paths.lock), ExclusiveLock(paths.lock)
    assert second.find_holder() is None
    assert first.acquire()
    assert not second.acquire()
    assert second.find_holder() == os.getpid()
    first.release()
    assert second.acquire()
    second.release()


def test_a_note_without_its_holder_counts_as_none(paths: DataDirectory) -> None:
    lock, note = (
        ExclusiveLock(paths.lock),
        StackInfo(os.getpid(), str(paths.socket_dir), ("valkey",), "http://127.0.0.1:1"),
    )
    assert lock.acquire()
    write_stack_info(paths, note)
    assert read_stack_info(paths) == note
    lock.release()
    assert read_stack_info(paths) is None


def test_the_servers_stop_only_after_the_last_command(paths: DataDirectory) -> None:
    with SharedLock(paths.users_lock) as host:
        with SharedLock(paths.users_lock) as guest:
            guest.acquire()
            assert not host.try_close()
        assert host.try_close()
