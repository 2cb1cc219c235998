"""The `Auth` object of the LangGraph project that a process serves, in its newest version that could be loaded.

Without one, API keys apply.
"""

import time
from collections.abc import Callable
from pathlib import Path

from offing.services.langgraph_auth import ProjectAuth
from offing.services.project_objects import ProjectKey, ProjectObjectLoader
from offing.settings import Settings

AUTH = ProjectKey(
    name="auth.path",
    kind="an Auth object",
    find_target=lambda project: project.auth,
    build=lambda loaded, field, _: ProjectAuth(loaded, field),
)


class ProjectAuthLoader(ProjectObjectLoader[ProjectAuth]):
    """Loads the `Auth` object of the projects among the paths, again when they change."""

    def __init__(
        self, paths: str, data_dir: Path, *, reload: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(AUTH, paths, data_dir, reload=reload, clock=clock)


def open_project_auth(settings: Settings) -> ProjectAuthLoader:
    """Return the loader for these settings."""
    return ProjectAuthLoader(settings.graph_paths, settings.home, reload=settings.graph_reload)
