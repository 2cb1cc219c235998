"""The `Auth` object of the LangGraph project that a process serves, in its newest version that could be loaded."""

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from offing.core.errors import InvalidInput
from offing.services.graph_folders import BrokenGraphProject, GraphProject, list_projects, load_target
from offing.services.graphs import POLL_SECONDS
from offing.services.langgraph_auth import ProjectAuth
from offing.services.langgraph_graphs import apply_project_env
from offing.services.langgraph_projects import find_langgraph_config
from offing.settings import Settings

log = structlog.get_logger()


class ProjectAuthLoader:
    """Loads the `Auth` object of the projects among the paths, again when they change."""

    def __init__(
        self, paths: str, data_dir: Path, *, reload: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._paths, self._data_dir, self._reload, self._clock = paths, data_dir, reload, clock
        self._auth: ProjectAuth | None = None
        self._version = ""
        self._polled_at = clock()
        self._problem = self._try_load()

    def get(self) -> ProjectAuth | None:
        """Return the object, or `None` if no project has one, so that API keys apply.

        If a newer version cannot be loaded, the last good one stays, so that an error never opens the server. Raises
        InvalidInput if none was ever loaded although a project may have one.
        """
        if self._reload and self._clock() - self._polled_at >= POLL_SECONDS:
            self._polled_at = self._clock()
            self._problem = self._try_load()
        if self._problem is not None and self._auth is None:
            raise self._problem
        return self._auth

    def _try_load(self) -> InvalidInput | None:
        """Load the object if it has changed, and return why it cannot be loaded. `None` if it can."""
        try:
            self._auth = self._load()
        except InvalidInput as error:
            log.warning("the Auth object of a project cannot be loaded", reason=str(error))
            return error
        return None

    def _load(self) -> ProjectAuth | None:
        projects = list_projects(self._paths)
        for one in projects:
            if isinstance(one, BrokenGraphProject) and find_langgraph_config(one.path) is not None:
                raise one.error
        guarded = [one for one in projects if isinstance(one, GraphProject) and one.langgraph and one.langgraph.auth]
        if len(guarded) > 1:
            named = " and ".join(str(one.path) for one in guarded)
            raise InvalidInput("auth.path", f"two projects have an Auth object: {named}", "Serve them separately.")
        if not guarded:
            self._version = ""  # the same version may come back
            return None
        project = guarded[0]
        if project.version == self._version:
            return self._auth
        assert project.langgraph is not None
        apply_project_env(project.langgraph)
        value = load_target(project, self._data_dir, project.langgraph.auth)
        auth = ProjectAuth(value, f"{project.langgraph.file}: auth.path ({project.langgraph.config.auth})")
        self._version = project.version
        return auth


def open_project_auth(settings: Settings) -> ProjectAuthLoader:
    """Return the loader for these settings."""
    return ProjectAuthLoader(settings.graph_paths, settings.home, reload=settings.graph_reload)
