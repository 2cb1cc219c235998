"""Which part of the web the domains of a scope allow."""

import pytest

from offing.core.url import InvalidUrl
from offing.core.web_domains import WebDomains, normalize_domain, normalize_domains


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Example.ORG", "example.org"),
        (" example.org. ", "example.org"),
        ("*.example.org", "example.org"),
        ("https://docs.example.org/a/b?c#d", "docs.example.org"),
        ("münchen.de", "xn--mnchen-3ya.de"),
        ("192.0.2.1", "192.0.2.1"),
        ("localhost", "localhost"),
    ],
)
def test_a_domain_is_read_from_what_people_write(text: str, domain: str) -> None:
    assert normalize_domain(text) == domain


@pytest.mark.parametrize("text", ["", "com", "exa mple.org", "user@example.org", "example.org/..\\", "*.*.org", "a..b"])
def test_what_is_no_domain_is_named(text: str) -> None:
    assert isinstance(normalize_domain(text), InvalidUrl)
    assert isinstance(normalize_domains(["example.org", text]), InvalidUrl)


def test_each_domain_is_listed_once() -> None:
    assert normalize_domains(["b.org", "a.org", "B.org"]) == ["b.org", "a.org"]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.org/", True),
        ("http://docs.example.org:8443/a", True),
        ("https://notexample.org/", False),
        ("https://example.org.evil.net/", False),
        ("https://ads.example.org/", False),
        ("https://x.ads.example.org/", False),
        ("https://other.net/", False),
        ("ftp://example.org/", False),
    ],
)
def test_subdomains_belong_to_their_domain_and_exclusions_come_first(url: str, allowed: bool) -> None:
    assert WebDomains(("example.org",), ("ads.example.org",)).allows(url) is allowed


def test_without_limits_every_page_is_allowed() -> None:
    assert WebDomains.from_scope({"web": True}).allows("https://anything.example/")
