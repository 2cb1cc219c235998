"""Registration of a graph: its builder, roles and initial state under a name and a content hash."""

import hashlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from offing.core.interaction import Interaction
from offing.sdk.context import RunInfo
from offing.sdk.langgraph_adapter import LangGraphAdapter
from offing.sdk.role import Role
from offing.sdk.tool import CustomTool

HASHED_SUFFIXES = frozenset({".py", ".txt", ".toml"})
"""Suffixes of the files that are part of a graph; other files are ignored."""


def compute_content_hash(*folders: Path, suffixes: Container[str] | None = None) -> str:
    """Return the SHA-256 of a graph's Python and prompt files. Its runs are pinned to it.

    `suffixes` are those of the files that are part of it; `None` means `HASHED_SUFFIXES`. The hash
    covers names and bytes, including shared files. Folders are read in the given order. A single file
    counts as a folder with that file. Raises `FileNotFoundError` if a folder does not exist, because
    changes of its files would then not change the version.
    """
    digest = hashlib.sha256()
    for folder in folders:
        if not folder.exists():
            raise FileNotFoundError(f"The folder {folder} of a graph does not exist.")
        top, files = (folder.parent, [folder]) if folder.is_file() else (folder, folder.rglob("*"))
        for path in sorted(p for p in files if p.suffix in (suffixes or HASHED_SUFFIXES)):
            digest.update(path.relative_to(top).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class StateView(StrEnum):
    """What the web UI's tab State shows of a run. Each view is drawn from the run's steps."""

    MEMORY = "memory"
    """The memory records of each turn."""
    VERSIONS = "versions"
    """The versions of the report, and what changed between them."""
    CONTEXT = "context"
    """The context as its agent edited or summarized it."""
    SUBGOALS = "subgoals"
    """The turns by subgoal."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A registered graph. Packages provide graphs through the entry point group `offing.graphs`."""

    name: str
    title: str
    """Title for people, in a few words."""
    description: str
    version: str
    """Content hash, see `compute_content_hash`. Only workers with the same version advance a run."""
    build: Callable[[], Any]
    """Returns the uncompiled `StateGraph` with `context_schema=RunContext`. It imports langgraph lazily."""
    initial_state: Callable[[RunInfo], dict[str, Any]]
    """Returns the run's input with every key of the state.

    Values of the thread's earlier run would otherwise remain.
    """
    roles: tuple[Role[Any, Any], ...]
    optional_roles: tuple[Role[Any, Any], ...] = ()
    """Roles that are asked only if a run names an engine for them.

    The default engine, `all` and presets that do not name them leave them out.
    """
    engines: Mapping[str, str] = field(default_factory=dict[str, str])
    """Default engine of each role, in the format of `core.model.parse_engine`.

    If absent, it is `extractive`.
    """
    turn_counter: str = ""
    """State key that counts turns.

    One checkpoint is kept for each of its values. Empty means one per superstep.
    """
    fallback_report: Callable[[RunInfo, Any], Any] | None = None
    """Builds a ReportDraft from (run, evidence) without a model.

    It is for runs that could not write their own report. `None` means that a list of the evidence is
    used.
    """
    tools: tuple[CustomTool | str, ...] = ()
    """Custom tools that its runs may call, in addition to the platform's.

    They are listed as values, or by the name under which another package provides them. Any other
    custom tool is rejected.
    """
    upgrade_state: Callable[[str, dict[str, Any]], dict[str, Any] | None] | None = None
    """Converts a state of another version, called with (its version, its state), to this version.

    It returns every key of the new state; a graph with a LangGraph adapter may leave keys out, which
    are then not set. If it returns `None`, that state cannot be converted. Without the function, a run
    waits for a worker with its own version.
    """
    handles_follow_ups: bool = False
    """Its runs answer questions on the thread's report, edit it, and merge new findings into it.

    `RunInfo.follow_up` then names the report. Without it, a follow-up is only new research.
    """
    interactions: tuple[Interaction, ...] = ()
    """When its runs can ask a person before they research, if the person chose it.

    `RunInfo.interactions` names those of a run.
    """
    has_editable_plan: bool = False
    """Its runs read changes of their plan that people make in the web UI; see `find_plan_change`.

    Its analysis records the parts of the question as `sub_questions`. Without it, people can only write messages.
    """
    state_view: StateView | None = None
    """What the tab State of the web UI shows of its runs. `None` means that there is no such tab."""
    langgraph_adapter: LangGraphAdapter | None = None
    """Adapter for a graph that uses only LangGraph; see `offing.langchain.register_langgraph`.

    `None` means that it uses the SDK.
    """

    def list_askable_roles(self, named: Container[str] = ()) -> tuple[Role[Any, Any], ...]:
        """Return the roles that a run asks if its configuration names these ones: all but optional ones not named."""
        return (*self.roles, *(role for role in self.optional_roles if role.name in named))
