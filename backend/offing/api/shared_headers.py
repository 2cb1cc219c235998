"""What keeps the addresses of shared reports out of caches, search engines and logs."""

import re

PRIVATE_PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}

_SHARED_PATH = re.compile(r"^(/api/v1)?/shared/(?P<token>[^/]+)")


def is_shared_path(path: str) -> bool:
    """Return whether a path contains the token of a share link."""
    return _SHARED_PATH.match(path) is not None


def hide_token(path: str) -> str:
    """Return a path for a log, without the token of a share link."""
    match = _SHARED_PATH.match(path)
    return path if match is None else f"{path[: match.start('token')]}[token]{path[match.end('token') :]}"
