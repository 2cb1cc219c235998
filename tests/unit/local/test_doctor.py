"""Each failing prerequisite is named with its remedy."""

import socket
from pathlib import Path

import pytest

from offing.local import doctor
from offing.settings import Settings


def test_a_taken_port_names_the_setting(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        check = doctor.inspect_port(Settings(home=tmp_path, port=taken.getsockname()[1]))
    assert not check.ok
    assert "OFFING_PORT" in str(check.remedy)


def test_an_open_home_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    check = doctor.inspect_data_directory(tmp_path)
    assert not check.ok
    assert check.remedy == f"Other users can read it. Run: chmod 700 {tmp_path}"


def test_a_home_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    assert doctor.inspect_data_directory(tmp_path / "later" / "still").ok


def test_keys_are_named_and_never_shown() -> None:
    check = doctor.inspect_provider_keys({"OPENAI_API_KEY": "sk-hidden"})
    assert check.detail == "OPENAI_API_KEY"


def test_a_server_that_does_not_answer_is_named_by_its_variable(tmp_path: Path) -> None:
    url = "postgresql://me:hidden@127.0.0.1:1/none"

    def refuse(address: str) -> str:
        raise ConnectionError(f"no answer from {address}")

    settings = Settings.model_validate({"home": tmp_path, "DATABASE_URL": url, "REDIS_URL": "redis://127.0.0.1:1"})
    checks = {c.name: c for c in doctor.run_checks(settings, doctor.Probes(refuse, lambda _: "7.0", both))}
    assert not checks["DATABASE_URL"].ok
    assert "hidden" not in checks["DATABASE_URL"].detail
    assert checks["REDIS_URL"].ok


def nobody(*_: str) -> str:
    raise ConnectionError("nobody there")


def both(url: str, key: str) -> str:
    return f"{url} {key}"


@pytest.mark.parametrize("inputs", [{}, {"policy_dir": "/policies"}])
def test_an_engine_that_need_not_run_is_not_asked(tmp_path: Path, inputs: dict[str, str]) -> None:
    check = doctor.inspect_policy_engine(Settings.model_validate({"home": tmp_path} | inputs), nobody)
    assert check.ok
    assert ("`offing up` starts one" in check.detail) == bool(inputs)


def test_the_policy_engine_is_asked_for_its_versions(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "engine_url": "http://e", "engine_key": "k"})
    assert doctor.inspect_policy_engine(settings, both).detail == "http://e k"
    check = doctor.inspect_policy_engine(settings, nobody)
    assert (check.ok, check.detail) == (False, "nobody there")
    assert "OFFING_ENGINE_URL" in (check.remedy or "")
