"""What holds for the project as a whole: entry points, pins, hooks, and what no file may contain."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

from tests.unit.docs.documents import ROOT, tracked

PACKAGE_HOSTS = ("py" + "pi.org", "pythonhosted" + ".org", "npm" + "js.org", "npm" + "js.com", "deb.deb" + "ian.org",
                 "crates" + ".io", "proxy.golang" + ".org", "hugging" + "face.co")  # fmt: skip
"""Put together here, so that this file does not name them."""


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_entry_point_exists() -> None:
    project = pyproject()["project"]
    points = [*project["scripts"].values(), *(p for group in project["entry-points"].values() for p in group.values())]
    for point in points:
        module, _, name = point.partition(":")
        assert hasattr(import_module(module), name), point


def test_what_the_makefile_starts_exists() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [s for s in re.findall(r"exec \./(\S+)", text) if not os.access(ROOT / s, os.X_OK)] == []
    modules = re.findall(r"-m ([\w.]+)", text)
    positions = [ROOT / module.replace(".", "/") for module in modules if module.startswith("tests.")]
    assert [str(p) for p in positions if not (p.with_suffix(".py").is_file() or (p / "__main__.py").is_file())] == []


def test_the_tampered_versions_of_litellm_are_excluded_and_not_locked() -> None:
    expected = {r.name: r for r in map(Requirement, pyproject()["project"]["dependencies"])}
    assert not expected["litellm"].specifier.contains("1.82.7")
    assert not expected["litellm"].specifier.contains("1.82.8")
    (locked,) = re.findall(r"^litellm==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert locked not in ("1.82.7", "1.82.8")
    assert expected["litellm"].specifier.contains(locked)


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))


def assert_pinned(expected: list[str], pinned: dict[str, str]) -> None:
    for requirement in map(Requirement, expected):
        assert requirement.name.lower() in pinned, requirement
        assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_the_lock_pins_every_dependency_within_its_range() -> None:
    project = pyproject()["project"]
    assert_pinned(project["dependencies"] + project["optional-dependencies"]["dev"], pins("requirements.lock"))


def test_the_second_lock_pins_what_training_needs_and_the_first_has_none_of_it() -> None:
    base, more = pins("requirements.lock"), pins("requirements-train.lock")
    extras = pyproject()["project"]["optional-dependencies"]
    assert_pinned(extras["train"] + extras["dev-train"], base | more)
    assert set(base) & set(more) == set()
    assert "torch" in more


def test_no_file_names_a_package_host() -> None:
    hosts = re.compile("|".join(re.escape(host) for host in {*PACKAGE_HOSTS, *_configured_hosts()}))
    results = [str(path.relative_to(ROOT)) for path in tracked() if hosts.search(_text(path))]
    assert results == []


def test_hooks_are_local_and_fetch_nothing() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    programs = [hook["entry"].split()[0] for hook in hooks]
    assert [p for p in programs if p != "sh" and not (ROOT / p).exists()] == []


def test_the_change_script_runs_every_part_and_can_be_read_by_bash() -> None:
    script = ROOT / ".ci/run"
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    for part in ("make setup", "make check", "make test", "deploy/check-wheel"):
        assert f" {part}" in text
    assert "|| true" not in text


def test_the_licence_is_the_one_that_is_declared() -> None:
    assert pyproject()["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert len(text.splitlines()) > 190


def test_both_names_of_the_map_are_one_file() -> None:
    assert (ROOT / "CLAUDE.md").is_symlink()
    assert (ROOT / "CLAUDE.md").resolve() == ROOT / "AGENTS.md"


def test_the_map_lists_every_package() -> None:
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    rooms = [p.parent for p in (ROOT / "backend/offing").glob("*/__init__.py")]
    assert [r.name for r in rooms if f"`backend/offing/{r.name}`" not in text] == []


def _configured_hosts() -> Iterator[str]:
    """Hosts of the registries that this machine is set up to use, whatever they are."""
    home = Path.home()
    files = [Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf", home / ".npmrc"]
    texts = [value for name, value in os.environ.items() if name.upper().endswith(("INDEX_URL", "REGISTRY"))]
    texts += [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    for host in re.findall(r"://(?:[^@/\s]*@)?([\w.-]+)", " ".join(texts)):
        if "." in host and not host.startswith("127."):
            yield host


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
