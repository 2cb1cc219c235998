"""Make `root_help.json` from the commands: `python -m tests.unit.cli.root_help --write`."""

import json
import sys
from pathlib import Path

from cyclopts import App

from offing.cli import root_help
from offing.cli.command import COMMANDS
from offing.cli.commands import app

PATH = Path(root_help.__file__).with_name("root_help.json")


def describe_root_help() -> str:
    """Return what `offing --help` says about the commands of Offing itself, as JSON."""
    flags, commands = [*app.help_flags, *app.version_flags], dict[str, str]()
    for name in sorted(set(app) - set(flags) - set(COMMANDS)):
        described = app[name]
        assert isinstance(described, App)
        commands[name] = " ".join(described.help.strip().split("\n\n")[0].split())
    root = {
        "description": app.help,
        "commands": commands,
        "flags": {"--help (-h)": "Display this message and exit.", "--version": "Display application version."},
    }
    return json.dumps(root, indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(describe_root_help()) if "--write" in sys.argv else sys.stdout.write(describe_root_help())
