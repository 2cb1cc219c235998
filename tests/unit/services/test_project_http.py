"""Settings of the server come from one project: two that have some are an error that names both files."""

import os
from pathlib import Path
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.services.project_http import RUN_HEADERS, read_http_settings
from offing.services.project_webhooks import read_webhook_rules
from tests.unit.services.test_langgraph_projects import with_graph

SECTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("http", {"disable_store": True}, read_http_settings),
    ("webhooks", {"url": {"require_https": True}}, read_webhook_rules),
]


@pytest.mark.parametrize(("key", "section", "read"), SECTIONS)
def test_two_projects_with_settings_of_the_server_are_an_error_that_names_both_files(
    key: str, section: dict[str, Any], read: Any, tmp_path: Path
) -> None:
    projects = [write_project(tmp_path / name, key, section) for name in ("first", "second")]
    with pytest.raises(InvalidInput, match=key) as raised:
        read(os.pathsep.join(str(one) for one in projects))
    for one in projects:
        assert str(one / "langgraph.json") in str(raised.value)


def test_one_project_with_settings_is_not_disturbed_by_others(tmp_path: Path) -> None:
    plain, own = with_graph(tmp_path / "plain"), with_graph(tmp_path / "own", http={"disable_store": True})
    http = read_http_settings(f"{plain}{os.pathsep}{own}")
    assert (http.disabled_routes, http.configurable_headers) == (frozenset({"store"}), RUN_HEADERS)
    assert read_http_settings(str(plain)).disabled_routes == frozenset()


def write_project(folder: Path, key: str, section: dict[str, Any]) -> Path:
    more: Any = {key: section}
    return with_graph(folder, **more)
