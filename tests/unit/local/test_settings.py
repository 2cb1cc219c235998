"""Settings come from the environment, then from a file, and complain by name."""

from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.settings import Settings, get_app_database_url, load_settings


def test_without_a_word_everything_is_embedded_and_on_loopback() -> None:
    settings = load_settings(env_file=None)
    assert (settings.database_url, settings.redis_url) == (None, None)
    assert (settings.host, settings.port) == ("127.0.0.1", 8400)


def test_the_environment_outranks_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".env"
    file.write_text("OFFING_PORT=8500\nOFFING_SLICE_MAX_TURNS=3\n")
    monkeypatch.setenv("OFFING_PORT", "8600")
    settings = load_settings(env_file=file)
    assert (settings.port, settings.slice_max_turns) == (8600, 3)


def test_an_empty_value_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    assert load_settings(env_file=None).database_url is None


@pytest.mark.parametrize(
    ("name", "value"), [("OFFING_PORT", "many"), ("OFFING_PORT", "70000"), ("OFFING_LEASE_SECONDS", "0")]
)
def test_a_value_that_cannot_be_used_is_named_and_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as raised:
        load_settings(env_file=None)
    assert raised.value.field == name
    assert "remove it" in raised.value.remedy


def test_a_heartbeat_that_leaves_a_lease_no_time_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFING_LEASE_SECONDS", "10")
    with pytest.raises(InvalidInput, match=r"OFFING_HEARTBEAT_INTERVAL_SECONDS: 5 s is more than a quarter .* 10 s"):
        load_settings(env_file=None)
    monkeypatch.setenv("OFFING_HEARTBEAT_INTERVAL_SECONDS", "2.5")
    assert load_settings(env_file=None).heartbeat_interval_seconds == 2.5


def test_addresses_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hidden@host/name")
    monkeypatch.setenv("OFFING_APP_DATABASE_URL", "postgresql://app:hidden@host/name")
    settings = load_settings(env_file=None)
    assert "hidden" not in f"{settings!r} {settings}"
    assert get_app_database_url(settings) == "postgresql://app:hidden@host/name"


def test_a_missing_address_says_how_to_get_one() -> None:
    with pytest.raises(InvalidInput, match=r"OFFING_APP_DATABASE_URL: is not set.*offing up"):
        get_app_database_url(Settings(database_url=None, app_database_url=None))
