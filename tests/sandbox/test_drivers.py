"""Ordinary code in every driver: what goes in, what comes out, and what ends it."""

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import wasmtime

from offing.sandbox.drivers.bubblewrap import BubblewrapDriver
from offing.sandbox.drivers.wasi import WasiDriver
from offing.sandbox.limits import SandboxLimits
from offing.sandbox.resource_usage import list_descendants
from offing.sandbox.sandbox import ExecutionRequest, KillReason, Sandbox, SandboxUnavailableError, WorkspaceFile
from tests.sandbox.leftovers import living, wait_until_ended

LIMITS = SandboxLimits(
    timeout_seconds=30, max_output_bytes=1000, max_file_bytes=1 << 20, max_files=2, max_total_bytes=4 << 20
)


async def test_files_go_in_and_those_that_are_new_or_changed_come_out(sandbox: Sandbox) -> None:
    files = (WorkspaceFile("same.txt", b"1"), WorkspaceFile("deep/changed.txt", b"2"))
    source = "open('deep/changed.txt', 'a').write('3'); open('new.txt', 'w').write(open('same.txt').read())"
    ran = await sandbox.run(ExecutionRequest(source, files))
    assert (ran.exit_status, ran.kill_reason, ran.stderr) == (0, None, "")
    assert {file.name: file.data for file in ran.files} == {"deep/changed.txt": b"23", "new.txt": b"1"}


async def test_a_mistake_shows_its_line_and_none_of_ours(sandbox: Sandbox) -> None:
    ran = await sandbox.run(ExecutionRequest("x = 1\nprint('so far')\nx / 0\n"))
    assert (ran.exit_status, ran.stdout) == (1, "so far\n")
    assert ran.stderr.startswith(
        'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    x / 0\n'
    )
    assert ran.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("source", "status"), [("import sys; sys.exit(7)", 7), ("raise SystemExit", 0), ("def f(:", 1), ("", 0)]
)
async def test_code_ends_with_its_own_status(sandbox: Sandbox, source: str, status: int) -> None:
    assert (await sandbox.run(ExecutionRequest(source))).exit_status == status


async def test_what_is_printed_is_kept_from_its_beginning_and_said_to_be_cut(sandbox: Sandbox) -> None:
    ran = await sandbox.run(ExecutionRequest("print('a' * 1500 + chr(0))", limits=LIMITS))
    assert (ran.stdout, ran.truncated, ran.kill_reason) == ("a" * 1000, True, None)
    assert (await sandbox.run(ExecutionRequest("print(chr(0))"))).stdout == "\ufffd\n"


async def test_files_beyond_the_limits_are_named_with_why(sandbox: Sandbox) -> None:
    ran = await sandbox.run(ExecutionRequest("for n in 'abc': open(n, 'w').write(n)", limits=LIMITS))
    assert [file.name for file in ran.files] == ["a", "b"]
    assert list(ran.skipped) == ["c: too many files, or too much in them"]


async def test_each_run_begins_anew(sandbox: Sandbox) -> None:
    await sandbox.run(
        ExecutionRequest("open('/tmp/left', 'w').write('x') if __import__('os').path.isdir('/tmp') else 0")
    )
    ran = await sandbox.run(ExecutionRequest("import os; print(os.listdir('.'), os.path.exists('/tmp/left'))"))
    assert ran.stdout == "[] False\n"


async def test_a_run_that_is_cancelled_ends_all_that_it_started(sandbox: Sandbox) -> None:
    before = set(list_descendants(os.getpid()))
    running = asyncio.create_task(sandbox.run(ExecutionRequest("import time; time.sleep(600)")))
    while not (processes := living(set(list_descendants(os.getpid())) - before)):
        await asyncio.wait({running}, timeout=0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await wait_until_ended(processes)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a//b", "a\nb", "x" * 201])
async def test_a_file_can_only_be_put_below_the_workspace(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        await sandbox.run(ExecutionRequest("pass", (WorkspaceFile(name, b"x"),)))


async def test_packages_come_from_the_folder_that_the_operator_names(
    bubblewrap: BubblewrapDriver, tmp_path: Path
) -> None:
    tmp_path.joinpath("tides.py").write_text("HEIGHT = 42\n", "utf-8")
    os.chmod(tmp_path, 0o755)
    with_packages = replace(bubblewrap, packages=tmp_path)
    assert (await with_packages.run(ExecutionRequest("import tides; print(tides.HEIGHT)"))).stdout == "42\n"
    assert (await with_packages.run(ExecutionRequest("open('/packages/x', 'w')"))).exit_status == 1
    assert os.listdir(tmp_path) == ["tides.py"]
    with pytest.raises(SandboxUnavailableError, match="is not a folder"):
        await replace(bubblewrap, packages=tmp_path / "none").run(ExecutionRequest("pass"))


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
        ("echo usage", "is too old; version 0.8 or later is required"),
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
        with pytest.raises(SandboxUnavailableError) as error:
            await BubblewrapDriver().run(ExecutionRequest("print('never')"))
    assert error.value.reason.endswith(reason)


def tiny(folder: Path) -> Path:
    """A module that ends at once, since what is kept of it is not looked into."""
    module = folder / "tiny.wasm"
    module.write_bytes(wasmtime.wat2wasm('(module (func (export "_start")))'))
    return module


async def test_compiled_code_is_ours_alone_and_is_made_anew_where_it_is_not(wasi: WasiDriver, tmp_path: Path) -> None:
    driver = replace(wasi, cache_dir=tmp_path / "kept", module=tiny(tmp_path))
    assert (await driver.run(ExecutionRequest("pass"))).exit_status == 0
    (stored,) = driver.cache_dir.iterdir()
    assert (stored.stat().st_mode & 0o777, driver.cache_dir.stat().st_mode & 0o777) == (0o600, 0o700)
    good = stored.read_bytes()
    stored.write_bytes(b"planted")
    stored.chmod(0o666)
    assert (await driver.run(ExecutionRequest("pass"))).exit_status == 0
    assert (stored.read_bytes()[:4], stored.stat().st_mode & 0o777) == (good[:4], 0o600)


async def test_compiled_code_is_not_kept_where_others_may_write(wasi: WasiDriver, tmp_path: Path) -> None:
    module = tiny(tmp_path)
    os.chmod(tmp_path, 0o777)
    with pytest.raises(SandboxUnavailableError, match="other users can write"):
        await replace(wasi, cache_dir=tmp_path, module=module).run(ExecutionRequest("pass"))
    with pytest.raises(SandboxUnavailableError, match="Not a directory"):
        await replace(wasi, cache_dir=module / "below", module=module).run(ExecutionRequest("pass"))


async def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="No such file"):
        await WasiDriver(tmp_path, tmp_path / "none.wasm").run(ExecutionRequest("pass"))


async def test_a_module_that_traps_is_told_from_code_that_failed(wasi: WasiDriver, tmp_path: Path) -> None:
    module = tmp_path / "trap.wasm"
    module.write_bytes(wasmtime.wat2wasm('(module (func (export "_start") unreachable))'))
    ran = await replace(wasi, cache_dir=tmp_path, module=module).run(ExecutionRequest("pass"))
    assert (ran.exit_status, ran.kill_reason) == (None, KillReason.CRASHED)
