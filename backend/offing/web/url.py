"""URL parsing for this package.

The implementation is in `offing.core.url`, because the tool policy uses it, too.
"""

from offing.core.url import DEFAULT_PORTS, MAX_URL_CHARS, InvalidUrl, ParsedUrl, parse_url, resolve_redirect

__all__ = ["DEFAULT_PORTS", "MAX_URL_CHARS", "InvalidUrl", "ParsedUrl", "parse_url", "resolve_redirect"]
