"""What `offing dev` prepares for a LangGraph project."""

from pathlib import Path

import orjson
import pytest

from offing.cli.langgraph_dev import DEFAULT_PORT, DevAddress, apply_address, prepare_langgraph_projects
from offing.core.errors import InvalidInput
from offing.core.langgraph_config import ThreadTtl, ThreadTtlStrategy
from offing.settings import Settings, default_home, load_settings
from tests.langgraph_project import copy_project

TTL = {"strategy": "keep_latest", "default_ttl": 2880}


def settings_of(**fields: object) -> Settings:
    return Settings(_env_file=None, **fields)  # pyright: ignore[reportCallIssue, reportArgumentType]


def configure(project: Path, **keys: object) -> None:
    file = project / "langgraph.json"
    file.write_bytes(orjson.dumps({**orjson.loads(file.read_bytes()), **keys}))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFFING_HOME", "OFFING_PORT", "OFFING_KEEP_CHECKPOINTS_DAYS", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_project_has_its_own_data_and_the_port_that_clients_expect(tmp_path: Path) -> None:
    project, messages = copy_project(tmp_path / "project"), list[str]()
    settings = prepare_langgraph_projects(settings_of(), [project], messages.append)
    assert (settings.home, settings.langgraph_port) == (project / ".offing", DEFAULT_PORT)
    assert settings.langgraph_without_key
    assert (project / ".offing/.gitignore").read_text() == "*\n"
    assert [line.partition(" It ")[0] for line in messages] == ["langgraph.json: image_distro:"]


def test_settings_that_are_set_are_kept(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    settings = settings_of(
        home=tmp_path / "home",
        port=8123,
        langgraph_port=8124,
        langgraph_without_key=False,
        langgraph_app=False,
        thread_ttl_minutes=3,
    )
    configure(project, checkpointer={"ttl": TTL})
    assert prepare_langgraph_projects(settings, [project], lambda _: None) == settings
    assert not (project / ".offing").exists()


def test_the_port_of_the_command_is_that_of_langgraphs_clients(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    prepared = prepare_langgraph_projects(settings_of(), [project], lambda _: None)
    local = apply_address(prepared, DevAddress(None, 2025, 8500))
    assert (local.langgraph_port, local.port, local.langgraph_without_key) == (2025, 8500, True)
    without_project = apply_address(settings_of(), DevAddress(None, 8500, None))
    assert (without_project.langgraph_port, without_project.port) == (None, 8500)
    with pytest.raises(InvalidInput, match="--web-port"):
        apply_address(settings_of(), DevAddress(None, None, 8500))


def test_a_key_is_needed_from_other_machines_and_by_a_project_with_auth(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    prepared = prepare_langgraph_projects(settings_of(), [project], lambda _: None)
    assert not apply_address(prepared, DevAddress("0.0.0.0", None, None)).langgraph_without_key
    configure(project, auth={"path": "./src/agent/model.py:auth"})
    guarded = prepare_langgraph_projects(settings_of(), [project], lambda _: None)
    assert not guarded.langgraph_without_key


def test_the_lifetime_of_threads_is_that_of_the_project(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    for strategy in ("delete", "keep_latest"):
        configure(project, checkpointer={"ttl": {**TTL, "strategy": strategy}})
        prepared = prepare_langgraph_projects(settings_of(), [project], lambda _: None)
        assert prepared.thread_ttl == ThreadTtl(2880, ThreadTtlStrategy(strategy))


def test_the_application_of_a_project_is_served_and_a_header_that_may_be_secret_is_named(tmp_path: Path) -> None:
    project, messages = copy_project(tmp_path / "project"), list[str]()
    http = {"app": "./src/agent/model.py:PhraseModel", "configurable_headers": {"includes": ["x-team", "x-api-key"]}}
    configure(project, http=http)
    assert prepare_langgraph_projects(settings_of(), [project], messages.append).langgraph_app
    assert [line.partition(": ")[2] for line in messages if "image_distro" not in line] == [
        "http.configurable_headers: x-api-key may carry a secret. It is not stored or logged."
    ]


def test_a_webhook_header_whose_variable_is_missing_is_an_error_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LG_WEBHOOK_TOKEN", raising=False)  # other tests load projects that set it
    project, messages = copy_project(tmp_path / "project"), list[str]()
    configure(project, webhooks={"headers": {"X-A": "${{ env.LG_WEBHOOK_TOKEN }}"}}, env=".env")
    with pytest.raises(InvalidInput, match="LG_WEBHOOK_TOKEN is not set"):
        prepare_langgraph_projects(settings_of(), [project], messages.append)
    (project / ".env").write_text("LG_WEBHOOK_TOKEN=hidden\n")
    prepare_langgraph_projects(settings_of(), [project], messages.append)
    assert any("every address that a client names" in line for line in messages)
    (project / ".env").unlink()
    monkeypatch.setenv("LG_WEBHOOK_TOKEN", "of the shell")
    prepare_langgraph_projects(settings_of(), [project], messages.append)


def test_a_configuration_that_cannot_be_used_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    configure(project, graphs={"agent": "./src/agent/gone.py:graph"})
    with pytest.raises(InvalidInput, match=r"graphs\.agent: there is no file .*gone\.py"):
        prepare_langgraph_projects(settings_of(), [project], lambda _: None)


def test_a_folder_of_graphs_is_left_as_it_is(tmp_path: Path) -> None:
    settings = settings_of()
    assert prepare_langgraph_projects(settings, [tmp_path], lambda _: None) is settings


def test_commands_in_a_project_use_its_data_and_not_the_database_of_its_env(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_project(tmp_path / "project")
    (project / ".env").write_text("DATABASE_URL=postgresql://of_the_project\nOFFING_PORT=1\n")
    monkeypatch.chdir(project)
    assert default_home() != project / ".offing"
    prepare_langgraph_projects(settings_of(), [project], lambda _: None)
    assert default_home() == project / ".offing"
    assert (load_settings().database_url, load_settings().port) == (None, 8400)
