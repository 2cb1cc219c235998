"""Print `offing --help` without importing the commands and the library that parses them.

The names and help texts of Offing's own commands are in `root_help.json`, which
`python -m tests.unit.cli.root_help --write` makes from the commands. A test compares what is printed here with what
the library prints.
"""

import json
import math
import re
import textwrap
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ROOT_HELP_ARGUMENTS: tuple[list[str], ...] = ([], ["--help"], ["-h"])
"""The arguments for which the root help is printed."""

NAME_SHARE = 0.35
"""Largest part of the terminal's width that the names take."""

_CODE = re.compile(r"`([^`]*)`")

_OTHER_MARKUP = re.compile(r"[*_\[\]<>\\|~#&]|https?:")
"""What a help text may not contain, because only a Markdown parser knows how it looks."""


def print_root_help(console: "Console | None" = None) -> bool:
    """Print the root help. Return False and print nothing if that needs the library.

    It does when a registered command cannot be used or its help has markup other than inline code. `None` stands for
    standard output.
    """
    from rich.console import Console

    from offing.cli.command import COMMANDS
    from offing.core.errors import InvalidInput

    root = json.loads(files("offing.cli").joinpath("root_help.json").read_text("utf-8"))
    own: dict[str, str] = root["commands"]
    try:
        registered = {name: COMMANDS[name].help for name in COMMANDS}
    except InvalidInput:
        return False
    if not registered.keys().isdisjoint(own) or any(_OTHER_MARKUP.search(text) for text in registered.values()):
        return False
    _print(console or Console(), root["description"], dict(sorted((own | registered).items())) | root["flags"])
    return True


def _print(console: "Console", description: str, entries: dict[str, str]) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    console.print(Text("Usage: offing COMMAND\n", style="bold"))
    console.print(_render_inline_code(description), end="\n\n")
    width = math.ceil(console.width * NAME_SHARE)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", max_width=width)
    table.add_column(overflow="fold")
    for name, text in entries.items():
        label = textwrap.wrap(name, width, subsequent_indent="  ", break_on_hyphens=False, tabsize=4)
        table.add_row("\n".join(label), _render_inline_code(text))
    console.print(Panel(table, title="Commands", title_align="left", padding=(0, 1)))


def _render_inline_code(text: str) -> "Text":
    """Return a text of one paragraph whose inline code is styled as rich styles it in Markdown."""
    from rich.text import Text

    rendered = Text()
    for number, part in enumerate(_CODE.split(text)):
        rendered.append(part, style="markdown.code" if number % 2 else "")
    return rendered
