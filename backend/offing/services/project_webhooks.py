"""The rules for webhooks of runs of the LangGraph projects that a process serves."""

from collections.abc import Mapping

from offing.core.errors import InvalidInput
from offing.core.webhook_rules import WebhookRules
from offing.services.graph_folders import BrokenGraphProject, list_projects
from offing.services.langgraph_projects import LangGraphProject, find_langgraph_config, read_project_env


def read_webhook_rules(paths: str) -> WebhookRules:
    """Return the rules of the project among the paths that has some, else rules that allow every address.

    Raises InvalidInput if two projects have some, or if one of them cannot be read: without its rules, a secret could
    be sent to an address that it does not allow.
    """
    rules: list[WebhookRules] = []
    for one in list_projects(paths) if paths else ():
        if isinstance(one, BrokenGraphProject):
            if find_langgraph_config(one.path) is not None:
                raise one.error
        elif one.langgraph and one.langgraph.config.webhooks != WebhookRules():
            rules.append(one.langgraph.config.webhooks)
    if len(rules) > 1:
        raise InvalidInput("webhooks", "two projects have rules for webhooks", "Serve them separately.")
    return rules[0] if rules else WebhookRules()


def check_webhook_headers(project: LangGraphProject, variables: Mapping[str, str]) -> None:
    """Raise InvalidInput for a header whose variable is neither in the project's `env` nor in `variables`."""
    own = {name: value for name, value in read_project_env(project.file, project.config).items() if value}
    project.config.webhooks.resolve_headers({**variables, **own})
