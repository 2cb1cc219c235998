"""Only `offing.environment` reads the environment of the process."""

import ast
from pathlib import Path

import pytest

from offing import environment

ROOT = Path(__file__).parents[2]

MODULES = [path for folder in ("backend", "workers", "graphs") for path in sorted((ROOT / folder).rglob("*.py"))]


def reads_environment(source: str) -> bool:
    names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    imported = {
        a.name
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.ImportFrom) and n.module == "os"
        for a in n.names
    }
    return bool((names | imported) & {"environ", "environb", "getenv", "getenvb", "putenv"})


def test_no_other_module_reads_the_environment() -> None:
    reading = [str(path.relative_to(ROOT)) for path in MODULES if reads_environment(path.read_text())]
    assert reading == ["backend/offing/environment.py"]


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_a_module_that_reads_the_environment_is_noticed(source: str) -> None:
    assert reads_environment(source)


def test_a_ready_file_is_named_by_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.READY_FILE_VARIABLE, raising=False)
    assert environment.find_ready_file() is None
    monkeypatch.setenv(environment.READY_FILE_VARIABLE, "/somewhere/ready")
    assert environment.find_ready_file() == Path("/somewhere/ready")


def test_a_variable_that_is_set_keeps_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_TEST_A", "old")
    environment.set_default("OFFING_TEST_A", "new")
    assert environment.select_variables(("OFFING_TEST_A", "OFFING_TEST_UNSET")) == {"OFFING_TEST_A": "old"}
