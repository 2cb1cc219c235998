"""Objects that the configuration of a LangGraph project names beside its graphs, in the newest version that loads."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from offing.core.errors import InvalidInput
from offing.services.graph_folders import BrokenGraphProject, GraphProject, list_projects, load_target
from offing.services.graphs import POLL_SECONDS
from offing.services.langgraph_graphs import apply_project_env
from offing.services.langgraph_projects import LangGraphProject, find_langgraph_config

log = structlog.get_logger()

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ProjectKey(Generic[Value]):
    """A key of the configuration that names an object."""

    name: str
    """The key with its parents, such as `auth.path`."""
    kind: str
    """What the object is, for messages."""
    find_target: Callable[[LangGraphProject], str]
    """Returns the reference of the object. Empty means that the project has none."""
    build: Callable[[Any, str, str], Value]
    """Returns what is used, from the object, its name in errors, and its version. Raises InvalidInput."""


class ProjectObjectLoader(Generic[Value]):
    """Loads the object of one key from the projects among the paths, again when they change."""

    def __init__(
        self,
        key: ProjectKey[Value],
        paths: str,
        data_dir: Path,
        *,
        reload: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key, self._paths, self._data_dir, self._reload, self._clock = key, paths, data_dir, reload, clock
        self._value: Value | None = None
        self._version = ""
        self._polled_at = clock()
        self._problem = self._try_load()

    def get(self) -> Value | None:
        """Return the object, or `None` if no project has one.

        If a newer version cannot be loaded, the last good one stays, so that an error never opens the server. Raises
        InvalidInput if none was ever loaded although a project may have one.
        """
        if self._reload and self._clock() - self._polled_at >= POLL_SECONDS:
            self._polled_at = self._clock()
            self._problem = self._try_load()
        if self._problem is not None and self._value is None:
            raise self._problem
        return self._value

    def _try_load(self) -> InvalidInput | None:
        """Load the object if it has changed, and return why it cannot be loaded. `None` if it can."""
        try:
            self._value = self._load()
        except InvalidInput as error:
            log.warning(f"{self._key.kind} of a project cannot be loaded", reason=str(error))
            return error
        return None

    def _load(self) -> Value | None:
        projects = list_projects(self._paths)
        for one in projects:
            if isinstance(one, BrokenGraphProject) and find_langgraph_config(one.path) is not None:
                raise one.error
        candidates = [one for one in projects if isinstance(one, GraphProject) and self._find_target(one)]
        if len(candidates) > 1:
            named = " and ".join(str(one.path) for one in candidates)
            raise InvalidInput(self._key.name, f"two projects have {self._key.kind}: {named}", "Serve them separately.")
        if not candidates:
            self._version = ""  # the same version may come back
            return None
        project = candidates[0]
        if project.version == self._version:
            return self._value
        assert project.langgraph is not None
        apply_project_env(project.langgraph)
        target = self._find_target(project)
        loaded = load_target(project, self._data_dir, target)
        value = self._key.build(loaded, f"{project.langgraph.file}: {self._key.name} ({target})", project.version)
        self._version = project.version
        return value

    def _find_target(self, project: GraphProject) -> str:
        return self._key.find_target(project.langgraph) if project.langgraph else ""
