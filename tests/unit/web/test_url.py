import pytest

from offing.web.url import InvalidUrl, ParsedUrl, parse_url, resolve_redirect
from tests.unit.web.addresses import GOOD, PARSERS

PAGE = ParsedUrl("https", "public.example", 443, "/a/b", None)


@pytest.mark.parametrize("text", PARSERS)
def test_what_two_readers_could_take_for_two_hosts_is_rejected(text: str) -> None:
    assert isinstance(parse_url(text), InvalidUrl)


@pytest.mark.parametrize("text", GOOD)
def test_an_ordinary_address_is_read_and_reads_the_same_again(text: str) -> None:
    target = parse_url(text)
    assert isinstance(target, ParsedUrl)
    assert parse_url(target.url) == target


def test_host_and_path_come_out_in_ascii_without_the_fragment() -> None:
    target = parse_url("HTTPS://B\u00dcCHER.example.:443/\u00e4?q=\u00f6#end")
    assert target == ParsedUrl("https", "xn--bcher-kva.example", 443, "/%C3%A4?q=%C3%B6", None)


def test_the_host_header_names_a_port_only_where_it_is_not_the_schemes_own() -> None:
    results = [parse_url(text) for text in ("http://a.example/", "http://a.example:443/", "https://[2606:4700::1111]/")]
    assert [t.authority for t in results if isinstance(t, ParsedUrl)] == [
        "a.example",
        "a.example:443",
        "[2606:4700::1111]",
    ]


def test_a_redirect_is_read_beside_the_page_that_it_came_from() -> None:
    assert resolve_redirect(PAGE, "c?d") == ParsedUrl("https", "public.example", 443, "/a/c?d", None)
    assert resolve_redirect(PAGE, "//other.example/x") == ParsedUrl("https", "other.example", 443, "/x", None)


@pytest.mark.parametrize("location", ["http://public.example/", "file:///etc/passwd", "\\\\127.0.0.1\\x", "/ x"])
def test_a_redirect_to_less_or_to_nonsense_is_rejected(location: str) -> None:
    assert isinstance(resolve_redirect(PAGE, location), InvalidUrl)
