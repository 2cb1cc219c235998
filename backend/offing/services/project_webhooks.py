"""The rules for webhooks of runs of the LangGraph projects that a process serves."""

from collections.abc import Mapping

from offing.core.webhook_rules import WebhookRules
from offing.services.graph_folders import BrokenGraphProject, list_projects
from offing.services.langgraph_projects import LangGraphProject, find_langgraph_config, read_project_env
from offing.services.project_http import find_one_project


def read_webhook_rules(paths: str) -> WebhookRules:
    """Return the rules of the project among the paths that has some, else rules that allow every address.

    Raises InvalidInput if two projects have some, or if one of them cannot be read: without its rules, a secret could
    be sent to an address that it does not allow.
    """
    projects: list[LangGraphProject] = []
    for one in list_projects(paths) if paths else ():
        if isinstance(one, BrokenGraphProject):
            if find_langgraph_config(one.path) is not None:
                raise one.error
        elif one.langgraph:
            projects.append(one.langgraph)
    chosen = find_one_project(projects, "webhooks", lambda project: project.config.webhooks != WebhookRules())
    return chosen.config.webhooks if chosen else WebhookRules()


def check_webhook_headers(project: LangGraphProject, variables: Mapping[str, str]) -> None:
    """Raise InvalidInput for a header whose variable is neither in the project's `env` nor in `variables`."""
    own = {name: value for name, value in read_project_env(project.file, project.config).items() if value}
    project.config.webhooks.resolve_headers({**variables, **own})
