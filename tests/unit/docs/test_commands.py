"""Every command that a document shows is one that exists, with options that it takes."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from cyclopts import MissingArgumentError

from offing.cli.commands import app
from tests.unit.docs.documents import ROOT, command_lines, documents

FOREIGN = frozenset(
    {"cd", "cp", "curl", "docker", "export", "npm", "npx", "-H", "-d", "api=http://localhost:8400/api/v1"}
)
"""Programs that are not ours, and continuations of their lines."""


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def verbs() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_the_commands_of_a_document_exist(document: Path) -> None:
    problems = [p for words in command_lines(document.read_text(encoding="utf-8")) if (p := problem_with(words))]
    assert problems == []


def test_the_readme_shows_both_ways_to_begin_and_the_command_that_runs_the_tests() -> None:
    rendered = [" ".join(words) for words in command_lines((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert "make up" in rendered
    assert "make test" in rendered
    assert any(line.startswith("offing ask ") and "--docs" in line for line in rendered)


@pytest.mark.parametrize(
    "words",
    [
        ["make", "nonsense"],
        ["offing", "nonsense"],
        ["offing", "ask", "x", "--nope"],
        ["deploy/nothing"],
        ["frobnicate"],
    ],
)
def test_a_command_that_does_not_exist_is_noticed(words: list[str]) -> None:
    assert problem_with(words)


def problem_with(words: list[str]) -> str:
    """Why this is no command of ours. Empty: it is one, or none of our business."""
    program, *rest = words
    match program:
        case "make":
            unknown = [w for w in rest if "=" not in w and w not in verbs() | {"help"}]
            return f"make {' '.join(unknown)}" if unknown else ""
        case "offing":
            return _offing(rest)
        case "python" if rest[:1] == ["-m"]:
            return "" if find_spec(rest[1]) else f"no module {rest[1]}"
        case "bash":
            return "" if (ROOT / rest[0]).is_file() else f"no script {rest[0]}"
        case _ if "/" in program and not program.startswith(("http", "$")):
            return "" if (ROOT / program).is_file() else f"no file {program}"
        case _:
            known = program in FOREIGN or (ROOT / ".venv/bin" / program).exists()
            return "" if known else f"unknown program {program}"


def _offing(words: list[str]) -> str:
    if not words or words == ["--help"]:
        return ""
    filled = ["FILLED" if re.fullmatch(r"[A-Z]+", word) else word for word in words]
    try:
        app.parse_args(filled, exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        _, _, arguments = app.parse_commands(filled)
        return f"offing {' '.join(words)}: {error}" if arguments else ""  # a command that is only mentioned
    except Exception as error:  # whatever the parser objects to is what a reader would meet
        return f"offing {' '.join(words)}: {error}"
    return ""
