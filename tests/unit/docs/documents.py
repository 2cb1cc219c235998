"""Reads this checkout's documents: its Markdown files, their links, headings and command lines."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_PROMPTED = ("make ", "offing ", "bash ", "python ", "npm ", ".venv/")


def tracked(pattern: str = "*") -> list[Path]:
    """Files of the checkout that git knows or would add: those that exist and match."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def documents() -> list[Path]:
    """Every Markdown file."""
    return [path for path in tracked("*.md") if not path.is_symlink()]


def prose(text: str) -> str:
    """A document without its blocks of code."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Targets of the links and pictures outside code."""
    return [result["target"] for result in _LINK.finditer(re.sub(r"`[^`\n]*`", "", prose(text)))]


def anchors(text: str) -> set[str]:
    """Names under which the headings of a document can be linked to."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose(text))}


def blocks(text: str, kind: str = "sh") -> list[str]:
    """The bodies of fenced blocks of a kind."""
    return [result["body"] for result in _FENCE.finditer(text) if result["kind"] == kind]


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of each simple command in the shell blocks and in inline code; `.venv/bin/` is left off."""
    lines = [line for block in blocks(text) for line in block.replace("\\\n", " ").splitlines()]
    lines += [code for code in re.findall(r"`([^`\n]+)`", prose(text)) if code.startswith(_PROMPTED)]
    for line in lines:
        for part in re.split(r"&&|;|\|", line.partition("  #")[0]):
            words = [word.removeprefix(".venv/bin/") for word in _words(part)]
            while words and re.fullmatch(r"[A-Za-z_]+=\S*", words[0]):
                words = words[1:]
            if words:
                yield words


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:  # half of a quotation that the split above cut through: no simple command
        return []
