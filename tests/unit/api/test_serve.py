"""Starting the API: which addresses it may listen on."""

import pytest

from offing.api.guard import list_allowed_hosts, parse_host
from offing.api.process import check_not_remote
from offing.core.errors import InvalidInput
from offing.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_loopback_needs_no_permission(host: str) -> None:
    check_not_remote(Settings(host=host), {})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_any_other_address_needs_the_operators_word(host: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_not_remote(Settings(host=host), {"OFFING_ALLOW_REMOTE": "yes"})
    assert caught.value.field == "OFFING_HOST"
    assert "OFFING_ALLOW_REMOTE=1" in caught.value.remedy
    check_not_remote(Settings(host=host), {"OFFING_ALLOW_REMOTE": "1"})


def test_a_wildcard_address_is_no_name_to_answer_to() -> None:
    loopback = {"localhost", "127.0.0.1", "[::1]"}
    assert list_allowed_hosts("0.0.0.0") == loopback
    assert list_allowed_hosts("::") == loopback
    assert list_allowed_hosts("192.168.1.5", ["Offing.example ", ""]) == loopback | {"192.168.1.5", "offing.example"}


def test_a_host_header_is_a_host_and_a_port_and_nothing_else() -> None:
    assert parse_host("LOCALHOST:8400") == "localhost"
    assert parse_host("[::1]:1") == "[::1]"
    assert parse_host("localhost:8400/x") is None
    assert parse_host("a@localhost") is None
    assert parse_host("localhost\n") is None
