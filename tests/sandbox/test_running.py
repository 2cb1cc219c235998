"""Ordinary code in every driver: what goes in, what comes out, and what ends it."""

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import wasmtime

from offing.sandbox.drivers.bubblewrap import Bubblewrap
from offing.sandbox.drivers.wasi import Wasi
from offing.sandbox.sandbox import CannotRun, Code, File, Killed, Limits, Sandbox
from offing.sandbox.watching import descendants
from tests.sandbox.leftovers import all_gone, living

LIMITS = Limits(seconds=30, text=1000, file=1 << 20, files=2, total=4 << 20)


async def test_files_go_in_and_those_that_are_new_or_changed_come_out(sandbox: Sandbox) -> None:
    files = (File("same.txt", b"1"), File("deep/changed.txt", b"2"))
    source = "open('deep/changed.txt', 'a').write('3'); open('new.txt', 'w').write(open('same.txt').read())"
    ran = await sandbox.run(Code(source, files))
    assert (ran.exit, ran.killed, ran.stderr) == (0, None, "")
    assert {file.name: file.data for file in ran.files} == {"deep/changed.txt": b"23", "new.txt": b"1"}


async def test_a_mistake_shows_its_line_and_none_of_ours(sandbox: Sandbox) -> None:
    ran = await sandbox.run(Code("x = 1\nprint('so far')\nx / 0\n"))
    assert (ran.exit, ran.stdout) == (1, "so far\n")
    assert ran.stderr.startswith(
        'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    x / 0\n'
    )
    assert ran.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("source", "status"), [("import sys; sys.exit(7)", 7), ("raise SystemExit", 0), ("def f(:", 1), ("", 0)]
)
async def test_code_ends_with_its_own_status(sandbox: Sandbox, source: str, status: int) -> None:
    assert (await sandbox.run(Code(source))).exit == status


async def test_what_is_printed_is_kept_from_its_beginning_and_said_to_be_cut(sandbox: Sandbox) -> None:
    ran = await sandbox.run(Code("print('a' * 1500 + chr(0))", limits=LIMITS))
    assert (ran.stdout, ran.cut, ran.killed) == ("a" * 1000, True, None)
    assert (await sandbox.run(Code("print(chr(0))"))).stdout == "\ufffd\n"


async def test_files_beyond_the_limits_are_named_with_why(sandbox: Sandbox) -> None:
    ran = await sandbox.run(Code("for n in 'abc': open(n, 'w').write(n)", limits=LIMITS))
    assert [file.name for file in ran.files] == ["a", "b"]
    assert list(ran.left_out) == ["c: too many files, or too much in them"]


async def test_each_run_begins_anew(sandbox: Sandbox) -> None:
    await sandbox.run(Code("open('/tmp/left', 'w').write('x') if __import__('os').path.isdir('/tmp') else 0"))
    ran = await sandbox.run(Code("import os; print(os.listdir('.'), os.path.exists('/tmp/left'))"))
    assert ran.stdout == "[] False\n"


async def test_a_run_that_is_cancelled_ends_all_that_it_started(sandbox: Sandbox) -> None:
    before = set(descendants(os.getpid()))
    running = asyncio.create_task(sandbox.run(Code("import time; time.sleep(600)")))
    while not (processes := living(set(descendants(os.getpid())) - before)):
        await asyncio.wait({running}, timeout=0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await all_gone(processes)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a//b", "a\nb", "x" * 201])
async def test_a_file_can_only_be_put_below_the_workspace(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match="no name of a file"):
        await sandbox.run(Code("pass", (File(name, b"x"),)))


async def test_packages_come_from_the_folder_that_the_operator_names(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    tmp_path.joinpath("tides.py").write_text("HEIGHT = 42\n", "utf-8")
    os.chmod(tmp_path, 0o755)
    with_packages = replace(bubblewrap, packages=tmp_path)
    assert (await with_packages.run(Code("import tides; print(tides.HEIGHT)"))).stdout == "42\n"
    assert (await with_packages.run(Code("open('/packages/x', 'w')"))).exit == 1
    assert os.listdir(tmp_path) == ["tides.py"]
    with pytest.raises(CannotRun, match="is not a folder"):
        await replace(bubblewrap, packages=tmp_path / "none").run(Code("pass"))


def stand_in(folder: Path, script: str) -> None:
    """A program of bubblewrap's name that answers as one would."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n", "ascii")
    program.chmod(0o755)
    folder.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "the program bwrap is not installed; install the package bubblewrap"),
        ("echo usage", "is too old; it needs bubblewrap 0.8 or later"),
        (
            'case "$1" in --help) echo --disable-userns;; *) echo "bwrap: No permissions" >&2; exit 1;; esac',
            "bwrap: No permissions",
        ),
    ],
)
async def test_where_bubblewrap_cannot_work_nothing_runs_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if script:
            stand_in(Path(folder), script)
        monkeypatch.setenv("PATH", folder)
        with pytest.raises(CannotRun) as refused:
            await Bubblewrap().run(Code("print('never')"))
    assert refused.value.reason.endswith(reason)


def tiny(folder: Path) -> Path:
    """A module that ends at once, since what is kept of it is not looked into."""
    module = folder / "tiny.wasm"
    module.write_bytes(wasmtime.wat2wasm('(module (func (export "_start")))'))
    return module


async def test_compiled_code_is_ours_alone_and_is_made_anew_where_it_is_not(wasi: Wasi, tmp_path: Path) -> None:
    driver = replace(wasi, folder=tmp_path / "kept", module=tiny(tmp_path))
    assert (await driver.run(Code("pass"))).exit == 0
    (kept,) = driver.folder.iterdir()
    assert (kept.stat().st_mode & 0o777, driver.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    good = kept.read_bytes()
    kept.write_bytes(b"planted")
    kept.chmod(0o666)
    assert (await driver.run(Code("pass"))).exit == 0
    assert (kept.read_bytes()[:4], kept.stat().st_mode & 0o777) == (good[:4], 0o600)


async def test_compiled_code_is_not_kept_where_others_may_write(wasi: Wasi, tmp_path: Path) -> None:
    module = tiny(tmp_path)
    os.chmod(tmp_path, 0o777)
    with pytest.raises(CannotRun, match="others may write"):
        await replace(wasi, folder=tmp_path, module=module).run(Code("pass"))
    with pytest.raises(CannotRun, match="Not a directory"):
        await replace(wasi, folder=module / "below", module=module).run(Code("pass"))


async def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="No such file"):
        await Wasi(tmp_path, tmp_path / "none.wasm").run(Code("pass"))


async def test_a_module_that_traps_is_told_from_code_that_failed(wasi: Wasi, tmp_path: Path) -> None:
    module = tmp_path / "trap.wasm"
    module.write_bytes(wasmtime.wat2wasm('(module (func (export "_start") unreachable))'))
    ran = await replace(wasi, folder=tmp_path, module=module).run(Code("pass"))
    assert (ran.exit, ran.killed) == (None, Killed.CRASHED)
