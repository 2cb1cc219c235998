"""Domains that limit which part of the web a run may use. Only names are compared; nothing is resolved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.url import InvalidUrl, ParsedUrl, parse_url

MAX_DOMAINS = 50
"""Maximum number of domains of each list."""


@dataclass(frozen=True, slots=True)
class WebDomains:
    """Limits of the web for one run. A domain stands for itself and its subdomains, on every port."""

    only: tuple[str, ...] = ()
    """The only domains that the run may use. Empty means all."""
    excluded: tuple[str, ...] = ()
    """Domains that the run may not use. They come before `only`."""

    @classmethod
    def from_scope(cls, scope: Mapping[str, Any]) -> "WebDomains":
        """Return the limits that a stored scope names."""
        return cls(tuple(scope.get("only_domains", ())), tuple(scope.get("excluded_domains", ())))

    def find_problem(self, target: ParsedUrl) -> str:
        """Explain why a URL is outside the limits. An empty text means that it is not."""
        if any(_is_within(target.host, domain) for domain in self.excluded):
            return f"This run may not use {target.host}."
        if self.only and not any(_is_within(target.host, domain) for domain in self.only):
            return f"This run may use only {', '.join(self.only[:10])}{' and others' if len(self.only) > 10 else ''}."
        return ""

    def allows(self, url: str) -> bool:
        """Return whether a URL can be parsed and is within the limits."""
        target = parse_url(url)
        return isinstance(target, ParsedUrl) and not self.find_problem(target)


ALL_DOMAINS = WebDomains()


def normalize_domain(text: str) -> str | InvalidUrl:
    """Return a domain in lower-case ASCII, from a domain, a pattern such as `*.example.org`, or a URL."""
    name = text.strip()
    target = parse_url(name if "://" in name else f"https://{name.removeprefix('*.')}")
    if isinstance(target, InvalidUrl):
        return InvalidUrl(f"{name[:80]!r} is not a domain; use one such as example.org")
    if target.address is None and "." not in target.host and target.host != "localhost":
        return InvalidUrl(f"{name[:80]!r} has no dot; use a domain such as example.org")
    return target.host


def normalize_domains(texts: Sequence[str]) -> list[str] | InvalidUrl:
    """Return each domain once, in the given order, or the problem of the first one that is invalid."""
    domains: list[str] = []
    for text in texts:
        domain = normalize_domain(text)
        if isinstance(domain, InvalidUrl):
            return domain
        domains.append(domain)
    return list(dict.fromkeys(domains))


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith("." + domain)
