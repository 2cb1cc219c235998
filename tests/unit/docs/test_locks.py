"""Locks name a hash for everything, and every way to install stops at a file that does not match it."""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.unit.docs import tiny_wheel
from tests.unit.docs.documents import ROOT, tracked

pytestmark = pytest.mark.timeout(300)

PYTHON_LOCKS = sorted(ROOT.glob("requirements*.lock"))


def entries(lock: Path) -> list[str]:
    """The requirements of a lock, each with its hashes."""
    text = re.sub(r"^#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def npm_packages() -> dict[str, dict[str, str]]:
    """What the npm lock names, by folder, without the project itself."""
    packages = json.loads((ROOT / "frontend/package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {name: entry for name, entry in packages.items() if name}


@pytest.mark.parametrize("lock", PYTHON_LOCKS, ids=lambda lock: lock.name)
def test_every_python_requirement_is_pinned_and_has_a_hash(lock: Path) -> None:
    result = entries(lock)
    assert result
    fitting = re.compile(r"[\w.-]+==\S+( ; [^\\]*?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in result if not fitting.fullmatch(entry)] == []


def test_every_npm_package_has_its_integrity() -> None:
    assert len(npm_packages()) > 100
    assert [
        name for name, entry in npm_packages().items() if not entry.get("integrity", "").startswith("sha512-")
    ] == []


def test_no_two_locks_disagree_on_a_version() -> None:
    versions: dict[str, set[str]] = {}
    for entry in (entry for lock in PYTHON_LOCKS for entry in entries(lock)):
        name, version = entry.split()[0].split("==")
        versions.setdefault(name, set()).add(version.removesuffix("+cpu"))
    assert {name: result for name, result in versions.items() if len(result) > 1} == {}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_what_the_project_requires_is_locked_for_each_version_of_python(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    versions = {
        requirement.name: str(requirement.specifier).removeprefix("==")
        for requirement in (Requirement(entry.split(" --hash")[0]) for entry in entries(ROOT / "requirements.lock"))
        if requirement.marker is None or requirement.marker.evaluate(environment)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [Requirement(line) for line in (*project["dependencies"], *project["optional-dependencies"]["dev"])]
    assert [r for r in required if not r.specifier.contains(versions.get(r.name.lower(), "0"))] == []


def test_what_builds_the_project_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(entry.split()[0].split("==") for entry in entries(ROOT / "requirements-build.lock"))
    for expected in map(Requirement, project["build-system"]["requires"] + project["dependency-groups"]["build"]):
        assert expected.specifier.contains(pins[expected.name]), expected


def test_nothing_is_installed_past_the_locks() -> None:
    """Each line that installs checks hashes, or installs the checkout itself with what is already installed."""
    files = [ROOT / "Makefile", ROOT / ".ci/run", *tracked("deploy/*")]
    text = "\n".join(file.read_text(encoding="utf-8").replace("\\\n", " ") for file in files if file.suffix != ".py")
    text = text.replace("$(PIP_INSTALL)", "pip install").replace("$(UV_INSTALL)", "uv pip install")
    lines = [line for line in text.splitlines() if "pip install " in line and " := " not in line]
    assert len(lines) > 5
    checked = ("--require-hashes", "$(LOCKED)", "--no-build-isolation -e .", "--dry-run")
    assert [line for line in lines if not any(flag in line for flag in checked)] == []
    assert re.findall(r"npm (?:install|i|update)\b", text) == []


def run_make(folder: Path, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run our own Makefile in a small project. Its packages lie beside it, and no registry is asked."""
    variables = {"PYTHON": sys.executable, "UV": str(Path(sys.executable).with_name("uv"))} | variables
    command = ["make", target, *(f"{name}={value}" for name, value in variables.items())]
    return subprocess.run(command, cwd=folder, env=offline(folder), capture_output=True, text=True, timeout=110)


def offline(folder: Path) -> dict[str, str]:
    stored = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "MAKE"))}
    links = str(folder / "packages")
    return stored | {
        "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": links,
        "UV_NO_CONFIG": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": links, "UV_CACHE_DIR": str(folder / "uv"),
        "npm_config_cache": str(folder / "npm"), "npm_config_offline": "true",
    }  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def project(environment: Path, tmp_path: Path) -> Path:
    """A project that needs `tiny`, with our Makefile and our script that installs its wheel."""
    shutil.copytree(environment, tmp_path / ".venv", symlinks=True)
    (tmp_path / "packages").mkdir()
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "deploy/install-wheel", tmp_path / "deploy")
    shutil.copy(tiny_wheel.__file__, tmp_path / "backend.py")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "project"\nversion = "1.0"\n'
    )
    for name, lock in (("tiny", "requirements.lock"), ("tiny_build", "requirements-build.lock")):
        digest = hashlib.sha256(tiny_wheel.write_wheel(tmp_path / "packages", name).read_bytes()).hexdigest()
        (tmp_path / lock).write_text(f"{name.replace('_', '-')}==1.0 \\\n    --hash=sha256:{digest}\n")
    return tmp_path


@pytest.mark.parametrize("uv", [str(Path(sys.executable).with_name("uv")), "false"], ids=["uv", "pip"])
def test_what_matches_is_installed_by_uv_and_by_pip_where_uv_fails(project: Path, uv: str) -> None:
    completed = run_make(project, ".venv/.offing-ready", UV=uv)
    assert completed.returncode == 0, completed.stderr
    assert ("uv failed" in completed.stdout) == (uv == "false")
    command = [project / ".venv/bin/python", "-c", "import tiny, tiny_build, project"]
    subprocess.run(command, cwd=project / "deploy", check=True)


def without_hash(lock: str) -> str:
    return lock.partition(" ")[0] + "\n"


def with_another_hash(lock: str) -> str:
    return re.sub(r"sha256:\w{8}", "sha256:00000000", lock)


SPOILED = pytest.mark.parametrize("spoil", [without_hash, with_another_hash], ids=["no hash", "another hash"])


@SPOILED
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-build.lock"])
def test_neither_uv_nor_pip_installs_what_does_not_match(project: Path, spoil: Callable[[str], str], lock: str) -> None:
    spoiled = project / lock
    spoiled.write_text(spoil(spoiled.read_text()))
    completed = run_make(project, ".venv/.offing-ready")
    assert completed.returncode != 0
    assert "hash" in completed.stderr.lower(), completed.stderr
    assert not (project / ".venv/.offing-ready").exists()
    name = "tiny" if lock == "requirements.lock" else "tiny_build"
    assert list(project.glob(f".venv/lib/*/site-packages/{name}.py")) == []


def install_wheel(project: Path) -> subprocess.CompletedProcess[str]:
    """Run deploy/install-wheel, as the image and the check of the wheel do, into a new environment."""
    uv, env = str(Path(sys.executable).with_name("uv")), offline(project)
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, project / "env"], env=env, check=True)
    command = [project / "deploy/install-wheel", uv, project / "env/bin/python", "project"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def test_the_wheel_is_installed_with_what_matches(project: Path) -> None:
    installed = install_wheel(project)
    assert installed.returncode == 0, installed.stderr
    assert list(project.glob("env/lib/*/site-packages/tiny.py"))


@SPOILED
def test_the_wheel_is_not_installed_with_what_does_not_match(project: Path, spoil: Callable[[str], str]) -> None:
    spoiled = project / "requirements.lock"
    spoiled.write_text(spoil(spoiled.read_text()))
    installed = install_wheel(project)
    assert installed.returncode != 0
    assert "hash" in installed.stderr.lower(), installed.stderr
    assert list(project.glob("env/lib/*/site-packages/tiny.py")) == []


def test_demo_documents_that_do_not_match_are_not_unpacked(tmp_path: Path) -> None:
    """The registry is a stand-in for npm that packs other files under the names that are asked for."""
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(
        "#!/bin/sh\nmkdir -p package && echo Read me. >package/README.md\ntar -czf a.tgz package && echo a.tgz\n"
    )
    npm.chmod(0o755)
    environment = os.environ | {"PATH": f"{npm.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [ROOT / "deploy/fetch-demo-docs", tmp_path / "docs"]
    fetched = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert fetched.returncode == 1
    assert "does not match its integrity" in fetched.stderr
    assert list((tmp_path / "docs").rglob("*")) == []


def test_demo_documents_are_fetched_into_a_folder_of_the_working_directory(tmp_path: Path) -> None:
    command = [ROOT / "deploy/fetch-demo-docs", "demo/docs"]
    fetched = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    documents = list((tmp_path / "demo/docs").rglob("*.md"))
    assert (fetched.returncode, fetched.stderr) == (0, "")
    assert f"{len(documents)} documents in" in fetched.stdout
    assert {"fastify", "undici"} == {path.relative_to(tmp_path / "demo/docs").parts[0] for path in documents}


@pytest.fixture
def page(project: Path) -> Path:
    """The project with a page that needs a package from a file."""
    folder = project / "frontend"
    folder.mkdir()
    package = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
    with tarfile.open(folder / "tiny.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(package)
        archive.addfile(member, io.BytesIO(package))
    root = {"name": "page", "version": "0.0.0", "dependencies": {"tiny": "file:tiny.tgz"}}
    checked = integrity((folder / "tiny.tgz").read_bytes())
    tiny = {"version": "1.0.0", "resolved": "file:tiny.tgz", "integrity": checked}
    lock = {"name": "page", "lockfileVersion": 3, "packages": {"": root, "node_modules/tiny": tiny}}
    (folder / "package.json").write_text(json.dumps(root))
    (folder / "package-lock.json").write_text(json.dumps(lock))
    return folder


def integrity(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def install_page(page: Path) -> bool:
    """Return whether the packages of the page were installed."""
    completed = run_make(page.parent, "frontend/node_modules/.offing-ready", PAGE_SOURCES="")
    assert (completed.returncode == 0) == (page / "node_modules/.offing-ready").is_file(), completed.stderr
    return completed.returncode == 0


def test_a_page_whose_packages_match_is_installed(page: Path) -> None:
    assert install_page(page)


def test_a_page_with_a_package_that_does_not_match_is_not_installed(page: Path) -> None:
    lock = page / "package-lock.json"
    lock.write_text(re.sub(r'sha512-[^"]+', integrity(b"another file"), lock.read_text()))
    assert not install_page(page)


def test_a_page_that_needs_more_than_its_lock_names_is_not_installed(page: Path) -> None:
    package = page / "package.json"
    package.write_text(package.read_text().replace('{"tiny"', '{"more": "file:tiny.tgz", "tiny"'))
    assert not install_page(page)
