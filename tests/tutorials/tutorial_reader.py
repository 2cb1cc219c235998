"""Follows a tutorial: its commands, its files and its changes, in their order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.docs.documents import ROOT

BIN = Path(sys.executable).parent

_BLOCK = re.compile(r"(?P<before>(?:[^\n]+\n)*)\n?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(?P<file>[^`\s]+\.\w+)`[^`]*:\s*\Z")

SECONDS = 240


@dataclass
class Follower:
    """A reader with a home of their own, in a folder."""

    folder: Path
    home: Path
    output: dict[str, str] = field(default_factory=dict[str, str])
    """What each command printed on both of its streams."""
    exported: dict[str, str] = field(default_factory=dict[str, str])
    file: str = ""
    """The file that was named last."""

    def follow(self, page: str) -> None:
        """Do all that a page of docs/tutorials says. Raises AssertionError at the first command that fails."""
        text = (ROOT / "docs/tutorials" / page).read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            named = _FILE.search(block["before"])
            self.file = named["file"] if named else self.file
            self._do(block["kind"], block["body"])

    def _do(self, kind: str, body: str) -> None:
        if kind == "sh":
            for line in body.replace("\\\n", " ").splitlines():
                if line.strip() and not line.startswith("#"):
                    self.run(line)
        elif kind == "diff":
            self._change(body)
        elif kind in ("python", "markdown", "toml", "json", "text"):
            target = self.folder / self.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")

    def run(self, line: str) -> None:
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            self.folder = self.folder / words[1]
            return
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.exported[name] = value.replace("$PWD", str(self.folder))
            return
        environment = os.environ | {
            "OFFING_HOME": str(self.home),
            "OFFING_PORT": "0",
            "OFFING_WORKER_PROCESSES": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            **self.exported,
        }
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
        self.output[line] = done.stdout + done.stderr
        assert done.returncode == 0, f"{line}\n{self.output[line]}"

    def _change(self, body: str) -> None:
        lines = body.splitlines()
        old = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
        new = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
        target = self.folder / self.file
        text = target.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{target} has {text.count(old)} times:\n{old}"
        target.write_text(text.replace(old, new), encoding="utf-8")
