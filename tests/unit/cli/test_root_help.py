"""`offing --help` is printed without the library that parses commands, and looks exactly as that library prints it."""

import io
import subprocess
import sys

import pytest
from rich.console import Console
from rich.text import Text

from offing.cli.command import COMMANDS
from offing.cli.commands import app
from offing.cli.root_help import print_root_help
from tests.unit.cli.root_help import PATH, describe_root_help


def console(width: int, *, color: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=color, color_system="truecolor" if color else None)


def printed(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def seen(to: Console) -> list[list[tuple[str, str]]]:
    """Return each line as its characters with their styles, without spaces at its end."""
    lines = Text.from_ansi(printed(to)).split("\n")
    for line in lines:
        line.rstrip()
    return [[(char, str(line.get_style_at_offset(to, at))) for at, char in enumerate(line.plain)] for line in lines]


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [40, 63, 80, 100, 120, 200])
def test_the_root_help_looks_as_the_library_prints_it(width: int, color: bool) -> None:
    ours, theirs = console(width, color=color), console(width, color=color)
    assert print_root_help(ours)
    app.help_print([], console=theirs)
    assert seen(ours) == seen(theirs)


def test_the_texts_of_the_root_help_are_those_of_the_commands() -> None:
    assert PATH.read_text() == describe_root_help(), "run `python -m tests.unit.cli.root_help --write`"


def test_a_registered_command_whose_help_has_markup_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMMANDS["world"].__class__, "help", "Worlds with *emphasis*.", raising=False)
    to = console(80, color=False)
    assert (print_root_help(to), printed(to)) == (False, "")


def test_the_root_help_does_not_import_the_commands() -> None:
    program = """
import sys
from offing.cli.main import main
sys.argv = ["offing", "--help"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
slow = {"cyclopts", "rich.markdown", "pydantic", "offing.cli.commands"} & set(sys.modules)
assert not slow, slow
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Usage: offing COMMAND")


def test_a_question_is_asked_without_the_import_of_langchain() -> None:
    program = """
import sys
import offing.cli.ask, offing_graphs.agentflow
slow = {"langchain_core", "langgraph.graph", "langgraph_sdk", "fastapi", "celery"} & set(sys.modules)
assert not slow, slow
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
