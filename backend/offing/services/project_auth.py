"""The `Auth` object of the LangGraph project that a process serves, in its newest version that could be loaded.

Without one, API keys apply.
"""

from offing.services.langgraph_auth import ProjectAuth
from offing.services.project_objects import ProjectKey, ProjectObjectLoader
from offing.settings import Settings

AUTH = ProjectKey(
    name="auth.path",
    kind="an Auth object",
    find_target=lambda project: project.auth,
    build=lambda loaded, field, _: ProjectAuth(loaded, field),
)


def open_project_auth(settings: Settings) -> ProjectObjectLoader[ProjectAuth]:
    """Return what loads the `Auth` object of the projects of these settings, again when they change."""
    return ProjectObjectLoader(AUTH, settings.graph_paths, settings.home, reload=settings.graph_reload)
