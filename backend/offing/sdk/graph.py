"""How a graph is registered: builder, roles and starting state, under a name and a content hash."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offing.sdk.context import RunView
from offing.sdk.plain import Plain
from offing.sdk.role import Role
from offing.sdk.tool import OwnTool

HASHED = frozenset({".py", ".txt", ".toml"})
"""Ends of the names of files that make up a graph; others are no part of it."""


def content_hash(*folders: Path) -> str:
    """SHA-256 over the names and bytes of a graph's Python and prompt files, those it shares included: what a run pins.

    Folders are read in the order given; a single file counts as a folder with that file.
    """
    digest = hashlib.sha256()
    for folder in folders:
        top, files = (folder.parent, [folder]) if folder.is_file() else (folder, folder.rglob("*"))
        for path in sorted(p for p in files if p.suffix in HASHED):
            digest.update(path.relative_to(top).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A graph that runs can name. Exposed through the entry point group `offing.graphs`."""

    name: str
    title: str
    """For people, in a few words."""
    description: str
    version: str
    """Content hash, see `content_hash`. A run is advanced only by workers that have the same one."""
    build: Callable[[], Any]
    """The uncompiled `StateGraph`, with `context_schema=RunContext`. Imports langgraph lazily, when called."""
    start: Callable[[RunView], dict[str, Any]]
    """The run's input: every key of the state, so that nothing of an earlier run of the thread is left."""
    roles: tuple[Role[Any, Any], ...]
    engines: Mapping[str, str] = field(default_factory=dict[str, str])
    """Default engine of each role, as `core.model.parse_engine` reads it. Absent: extractive."""
    turn_key: str = ""
    """State key that counts turns. One checkpoint is kept for each of its values. Empty: one a superstep."""
    salvage: Callable[[RunView, Any], Any] | None = None
    """Writes a ReportDraft from (run, evidence) without a model, for runs that ended before their own generator could.
    None: a plain list of the evidence is used."""
    tools: tuple[OwnTool | str, ...] = ()
    """Own tools that its runs may call, beside the platform's: as values, or by the name under which another package
    offers them. A tool that is not named here is refused."""
    upgrade: Callable[[str, dict[str, Any]], dict[str, Any] | None] | None = None
    """Makes a state of this version from that of another, given as (its version, its state): every key of the new one,
    though a graph for LangGraph alone may leave keys out, which are then not set. `None` from it: that state cannot be
    carried over. `None` here: a run waits for a worker with its own version."""
    plain: Plain | None = None
    """For a graph that is written for LangGraph alone; see `offing.langchain.plain_graph`. None: it knows the SDK."""
