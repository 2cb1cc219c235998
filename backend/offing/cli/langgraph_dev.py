"""`offing dev` in a LangGraph project: its data directory, its port, and what of its configuration has no effect."""

import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config import ConfigNotice, LangGraphConfig, compare_python
from offing.local.api_address import prefer_port
from offing.models.api_base import is_loopback
from offing.services.graph_folders import load_project
from offing.services.langgraph_projects import LangGraphProject, find_langgraph_config
from offing.services.project_webhooks import check_webhook_headers
from offing.settings import PROJECT_HOME, Settings
from offing.telemetry.redaction import may_be_secret

DEFAULT_PORT = 2024
"""Port at which clients expect the server of a LangGraph project."""


@dataclass(frozen=True, slots=True)
class DevAddress:
    """Where `offing dev` listens. `None` means that the command does not say so."""

    host: str | None
    port: int | None
    """For a LangGraph project, the port of LangGraph's API; otherwise that of the web UI."""
    web_port: int | None
    """The port of the web UI beside LangGraph's API."""


def apply_address(settings: Settings, address: DevAddress) -> Settings:
    """Return the settings with the address of the command.

    LangGraph's API needs no key only on this machine. Raises InvalidInput for a second port without a LangGraph
    project.
    """
    if settings.langgraph_port is None and address.web_port is not None:
        raise InvalidInput("--web-port", "the folder is no LangGraph project", "Use --port.")
    if settings.langgraph_port is None:
        ports = {"port": address.port}
    else:
        ports = {"langgraph_port": address.port, "port": address.web_port}
    named: dict[str, object] = {"host": address.host, **ports}
    settings = settings.model_copy(update={name: value for name, value in named.items() if value is not None})
    without_key = settings.langgraph_without_key and is_loopback(settings.host)
    return settings.model_copy(update={"langgraph_without_key": without_key})


def prepare_langgraph_projects(settings: Settings, paths: Sequence[Path], say: Callable[[str], object]) -> Settings:
    """Return the settings for the LangGraph projects among the paths, and say what of them has no effect.

    Without one, they are unchanged. Raises InvalidInput for a project whose configuration cannot be used.
    """
    projects = [one for path in paths if (one := _find_project(path)) is not None]
    for project in projects:
        check_webhook_headers(project, environment.VARIABLES)
        for notice in list_notices(project.config):
            say(f"{project.file.name}: {notice}")
    return _prepare(settings, projects[0]) if projects else settings


def list_notices(config: LangGraphConfig) -> list[ConfigNotice]:
    """List what of a configuration has another effect here than in LangGraph's server."""
    notices = [*config.notices]
    if (version := compare_python(config, sys.version_info[:2])) is not None:
        notices.append(version)
    notices += _list_secret_headers(config)
    return notices


def _list_secret_headers(config: LangGraphConfig) -> Iterator[ConfigNotice]:
    for key in ("configurable_headers", "logging_headers"):
        patterns: HeaderPatterns | None = getattr(config.http, key)
        for name in patterns.includes if patterns else ():
            if may_be_secret(name, ""):
                yield ConfigNotice(f"http.{key}", f"{name} may carry a secret. It is not stored or logged.")


def open_in_browser(link: str) -> None:
    """Open the web UI, if a person started the command at a terminal."""
    if sys.stderr.isatty():
        webbrowser.open(link)


def _find_project(path: Path) -> LangGraphProject | None:
    path = path.expanduser().resolve()
    return load_project(path).langgraph if find_langgraph_config(path) is not None else None


def _prepare(settings: Settings, project: LangGraphProject) -> Settings:
    changes: dict[str, object] = {}
    if "home" not in settings.model_fields_set:
        changes["home"] = create_project_home(project.file.parent)
    if "langgraph_port" not in settings.model_fields_set:
        changes["langgraph_port"] = DEFAULT_PORT
    if "port" not in settings.model_fields_set:
        changes["port"] = prefer_port(settings.host, settings.port)
    if "langgraph_without_key" not in settings.model_fields_set:
        changes["langgraph_without_key"] = not project.config.auth
    if "langgraph_app" not in settings.model_fields_set:
        changes["langgraph_app"] = True
    ttl = project.config.thread_ttl
    if ttl is not None and "thread_ttl_minutes" not in settings.model_fields_set:
        changes |= {"thread_ttl_minutes": ttl.default_ttl, "thread_ttl_strategy": ttl.strategy}
    return settings.model_copy(update=changes)


def create_project_home(folder: Path) -> Path:
    """Return the data directory of a project, which version control ignores."""
    home = folder / PROJECT_HOME
    home.mkdir(mode=0o700, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return home
