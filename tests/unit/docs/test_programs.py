"""`make test` installs the programs that no lock has, or says which are missing; no test is left out unnoticed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT

pytestmark = pytest.mark.timeout(300)

ALL = ("chromium", "bubblewrap", "redis-server", "postgresql", "libreoffice-writer-nogui")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """An empty machine: a folder of programs with the shell's own, and an apt-get that writes down what it is to do."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "id", "xargs", "echo"):
        (folder / name).symlink_to(next(p for p in (Path("/usr/bin") / name, Path("/bin") / name) if p.exists()))
    return folder


def program(path: Path, script: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def install_all(programs: Path) -> None:
    for name in ("chromium", "bwrap", "redis-server", "pg/15/bin/postgres", "soffice"):
        program(programs / name)


def run_script(programs: Path) -> subprocess.CompletedProcess[str]:
    positions = {"OFFING_CHROMIUM": str(programs / "chromium"), "POSTGRES_FOLDER": str(programs / "pg")}
    environment = {"PATH": str(programs)} | positions
    return subprocess.run(["/bin/sh", ROOT / "tests/install-programs"], env=environment, capture_output=True, text=True)


def test_nothing_is_done_where_every_program_is_installed(programs: Path) -> None:
    install_all(programs)
    program(programs / "apt-get", "exit 1")
    done = run_script(programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("who", ["an ordinary user", "a machine without apt-get"])
def test_missing_programs_are_named_with_what_to_do(programs: Path, who: str) -> None:
    if who == "an ordinary user":
        (programs / "id").unlink()
        program(programs / "id", "echo 1000")
        program(programs / "apt-get", "exit 1")
    done = run_script(programs)
    assert done.returncode == 1
    assert f"not installed: {' '.join(ALL)}." in done.stderr
    assert f"sudo apt-get install {' '.join(ALL)}" in done.stderr
    assert "make test SKIP_MISSING=1" in done.stderr


@pytest.mark.parametrize("works", [True, False])
def test_root_installs_what_is_missing_and_is_told_if_that_did_not_help(programs: Path, works: bool) -> None:
    (programs / "id").unlink()
    program(programs / "id", "echo 0")
    install_all(programs)
    (programs / "redis-server").unlink()
    created = f"[ $1 = update ] || cp {programs}/bwrap {programs}/redis-server" if works else ":"
    program(programs / "apt-get", f'echo "$@" >>{programs}/asked\nPATH=/usr/bin:/bin\n{created}')
    done = run_script(programs)
    assert (programs / "asked").read_text().splitlines()[1].endswith("--no-install-recommends redis-server")
    assert done.returncode == (0 if works else 1)
    assert ("did not install these programs, which the tests need: redis-server" in done.stderr) == (not works)


@pytest.mark.parametrize("inputs", ["", "SKIP_MISSING=1", "T=tests/unit"])
def test_make_test_installs_them_unless_it_is_narrowed(inputs: str) -> None:
    command = ["make", "--dry-run", "test", "VENV=.no-such", *inputs.split()]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = re.findall(r"^\[ -n .*install-programs$", completed, re.MULTILINE)
    assert line.startswith('[ -n "" ]') == (not inputs)
    assert "tests/install-programs" in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("skip", [True, False])
def test_a_test_whose_program_is_missing_fails_and_is_skipped_only_when_that_is_asked_for(skip: bool) -> None:
    environment = {
        n: v for n, v in os.environ.items() if n not in ("SKIP_MISSING", "CI") and not n.startswith("PYTEST_")
    }
    environment |= {"POSTGRES_FOLDER": "/no/such"} | ({"SKIP_MISSING": "1"} if skip else {})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/local/test_servers_from_outside.py",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == (0 if skip else 1), done.stdout
    assert "Debian's postgresql is not installed. tests/install-programs names what to install." in done.stdout
    assert ("skipped" in done.stdout.splitlines()[-1]) == skip
