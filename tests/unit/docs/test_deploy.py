"""The files under deploy/ say what they must, as far as this can be told without a container engine."""

import fnmatch
import os
import re
from pathlib import Path
from typing import Any

import yaml

from offing.settings import Settings
from tests.unit.docs.documents import ROOT, tracked

DEPLOY = ROOT / "deploy"


def dockerfile() -> list[tuple[str, str]]:
    """Instructions with their arguments; continued lines joined, comments left out."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path of the checkout out of the build: the last line that fits decides."""
    verdict = False
    parts = path.split("/")
    parents = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, keep = line.removeprefix("!"), line.startswith("!")
            if any(fnmatch.fnmatch(p, pattern) or fnmatch.fnmatch(f"/{p}", pattern) for p in parents):
                verdict = not keep
    return verdict


def test_stages_are_built_from_stages_that_exist() -> None:
    stages = [match[1] for word, rest in dockerfile() if word == "FROM" and (match := re.search(r" AS (\w+)()", rest))]
    used = [match[1] for word, rest in dockerfile() if word == "COPY" and (match := re.search(r"--from=(\w+)", rest))]
    assert stages == ["page", "wheel"]
    assert set(used) == set(stages)


def test_everything_that_is_copied_is_in_the_checkout_and_not_ignored() -> None:
    for word, rest in dockerfile():
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert not ignored(source.rstrip("/")), source


def test_nothing_private_or_built_is_sent_to_the_build() -> None:
    expected = {".git/config", ".venv/bin/python", "deploy/.env", "frontend/node_modules/x", "frontend/dist/index.html"}
    expected |= {"backend/offing/__pycache__/x.pyc", ".demo/docs/x.md", "tests/conftest.py", "frontend/.env"}
    assert {path for path in expected if not ignored(path)} == set()
    assert not ignored("backend/offing/core/run.py")


def test_the_image_runs_as_an_ordinary_user() -> None:
    words = [word for word, _ in dockerfile()]
    last_stage = dockerfile()[len(words) - 1 - words[::-1].index("FROM") :]
    users = [rest for word, rest in last_stage if word == "USER"]
    assert users == ["offing"]
    assert [word for word, _ in last_stage].index("USER") < [word for word, _ in last_stage].index("CMD")


def test_every_part_runs_the_command_that_offing_up_runs() -> None:
    services = compose()["services"]
    assert services["migrate"]["command"] == ["offing", "migrate"]
    assert services["api"]["command"] == ["python", "-m", "offing.api"]
    assert services["worker"]["command"] == ["python", "-m", "offing_workers"]


def test_parts_start_after_what_they_need() -> None:
    services = compose()["services"]
    assert services["migrate"]["depends_on"] == {
        "postgres": {"condition": "service_healthy"},
        "valkey": {"condition": "service_healthy"},
    }
    for part in ("api", "worker"):
        assert services[part]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert all("healthcheck" in services[name] for name in ("postgres", "valkey", "api"))


def test_only_migrations_know_the_owner() -> None:
    services = compose()["services"]
    assert [name for name, s in services.items() if "DATABASE_URL" in s.get("environment", {})] == ["migrate"]


def test_parts_are_told_only_what_offing_reads() -> None:
    settings = {f"OFFING_{name.upper()}" for name in Settings.model_fields} | {"DATABASE_URL", "REDIS_URL"}
    others = {"OFFING_ALLOW_REMOTE", "OFFING_ALLOWED_HOSTS", "OFFING_DEFAULT_ENGINE", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    services = compose()["services"]
    messages = {name for part in ("migrate", "api", "worker") for name in services[part]["environment"]}
    assert messages - settings - others == set()


def test_nothing_is_published_beyond_loopback() -> None:
    published = [port for service in compose()["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(str(port).startswith("127.0.0.1:") for port in published)


def test_every_variable_that_compose_wants_is_in_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    example = (DEPLOY / "example.env").read_text(encoding="utf-8")
    expected = set(re.findall(r"\$\{(\w+)", text))
    assert expected == set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_passwords_have_no_default() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert re.findall(r"\$\{\w*PASSWORD(?!:\?)", text) == []


def test_the_collector_takes_what_offing_sends() -> None:
    config = yaml.safe_load((DEPLOY / "otel-collector.yaml").read_text(encoding="utf-8"))
    pipeline = config["service"]["pipelines"]["traces"]
    for kind in ("receivers", "processors", "exporters"):
        assert set(pipeline[kind]) <= set(config[kind])
    assert config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")


def test_scripts_can_be_executed_and_stop_at_the_first_error() -> None:
    scripts = [path for path in (*tracked("deploy/*"), ROOT / ".ci/run") if _is_script(path)]
    assert {"demo", "fetch-demo-docs", "check-wheel", "run"} <= {path.name for path in scripts}
    for script in scripts:
        assert os.access(script, os.X_OK), script
        assert re.search(r"^set -eu", script.read_text(encoding="utf-8"), re.MULTILINE), script


def _is_script(path: Path) -> bool:
    return path.read_bytes().startswith(b"#!")
