"""Hosts and folders in a tool policy: which one contains another.

Only text is compared. No name is resolved and no file is accessed, so symbolic links are not
followed.
"""

import re
import unicodedata
from functools import lru_cache

from offing.core.url import DEFAULT_PORTS, MAX_URL_CHARS, InvalidUrl, ParsedUrl, parse_url

MAX_PATH_CHARS = 4_096
_EMAIL = re.compile(r"[^@\s<>\"(),:;\\]+@([^@\s<>\"(),:;\\]+)")
_SCHEME = re.compile(
    r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]{1,2}|[/\\]{2}|(?:blob|data|file|javascript|mailto|sms|tel|wss?):).*",
    re.DOTALL | re.IGNORECASE,
)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BARE_HOST = re.compile(r"[^\s/@:]+(?:\.[^\s/@:.]+)+\.?(?::\d+)?(?:/\S*)?")


def find_host_problem(pattern: str) -> str:
    """Explain why a host pattern is invalid. An empty string means that it is valid."""
    if isinstance(_parse_host_pattern(pattern), InvalidUrl):
        return (
            f"{pattern[:100]!r} is not a valid host; use a form such as docs.example.org, *.example.org or "
            "docs.example.org:8443"
        )
    return ""


def matches_host(url: str, patterns: tuple[str, ...], *, any_port: bool) -> bool | None:
    """Return whether a URL is at one of these hosts. `None` means that the URL cannot be parsed.

    With `any_port`, a pattern without a port means all ports, else only the default port of the scheme.
    """
    target = _parse_url_cached(url)
    if isinstance(target, InvalidUrl):
        return None
    return any(_is_covered(pattern, target, any_port) for pattern in patterns)


def is_host_within(narrow: str, wide: str) -> bool:
    """Return whether every host that `narrow` matches in an allow rule is one that `wide` matches there."""
    ours, theirs = _parse_host_pattern(narrow), _parse_host_pattern(wide)
    if (
        isinstance(ours, InvalidUrl)
        or isinstance(theirs, InvalidUrl)
        or _parse_pattern_port(narrow) != _parse_pattern_port(wide)
    ):
        return False
    if not wide.startswith("*."):
        return not narrow.startswith("*.") and ours.host == theirs.host
    below = ours.host.endswith("." + theirs.host)
    return below or (narrow.startswith("*.") and ours.host == theirs.host)


def find_destination(text: str, *, allow_bare: bool) -> str | None:
    """Return the host or the full email address that the text names. `None` means that it names neither.

    The empty text means that it looks like an address but cannot be parsed. With `allow_bare`, host
    names without a scheme count, too.
    """
    target = _parse_url_cached(text)
    if isinstance(target, ParsedUrl):
        return target.host
    mail = _EMAIL.fullmatch(text.strip())
    if mail:
        return text.strip().lower()
    if _SCHEME.fullmatch(text):
        return ""
    if not allow_bare or not _BARE_HOST.fullmatch(text):
        return None
    target = parse_url(f"https://{text}")
    return target.host if isinstance(target, ParsedUrl) else ""


def find_folder_problem(folder: str) -> str:
    """Explain why a folder of a tool policy is invalid. An empty string means that it is valid."""
    if not folder.startswith("/") or split_path(folder) is None:
        return f"{folder[:100]!r} is not a valid folder; use an absolute path with plain names, such as /data/reports"
    return ""


def is_inside(path: str, folder: str, *, strict: bool) -> bool | None:
    """Return whether a path is the folder or lies inside it.

    `None` means that this is undecidable, for example for a path with `..`. With `strict`, as in an
    allow rule, a relative path counts from the folder and letters are compared exactly. Otherwise a
    relative path is undecidable, and the comparison ignores case and Unicode form.
    """
    parts, top = split_path(path), split_path(folder)
    if parts is None or top is None:
        return None
    if not path.startswith("/"):
        return True if strict else None
    if not strict:
        parts, top = tuple(map(_normalize_part, parts)), tuple(map(_normalize_part, top))
    return parts[: len(top)] == top


def split_path(path: str) -> tuple[str, ...] | None:
    """Split a path into its names.

    `None` means that two programs could resolve the path differently.
    """
    return _split_checked(path) if 0 < len(path) <= MAX_PATH_CHARS else None


@lru_cache(maxsize=256)
def _split_checked(path: str) -> tuple[str, ...] | None:
    if path.startswith(("~", "//")) or "\\" in path or "%" in path:
        return None
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in path):
        return None
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    doubtful = any(part.strip() != part or _is_parent_name(part) or _has_separator(part) for part in parts)
    return None if doubtful or _ANY_SCHEME.match(path) else parts


def _has_separator(part: str) -> bool:
    """Return whether a name could be read as two names."""
    return not {"/", "\\"}.isdisjoint(unicodedata.normalize("NFKC", part))


def _is_parent_name(part: str) -> bool:
    """Return whether a name is, or could be read as, the parent folder."""
    return set(unicodedata.normalize("NFKC", part).strip()) == {"."}


def _normalize_part(part: str) -> str:
    return unicodedata.normalize("NFKC", part).casefold()


def _parse_url_cached(text: str) -> ParsedUrl | InvalidUrl:
    """Parse a URL with a cache, because several rules parse the same one."""
    return _parse_url_memoized(text) if len(text) <= MAX_URL_CHARS else parse_url(text)


@lru_cache(maxsize=256)
def _parse_url_memoized(text: str) -> ParsedUrl | InvalidUrl:
    return parse_url(text)


@lru_cache(maxsize=1_024)
def _parse_host_pattern(pattern: str) -> ParsedUrl | InvalidUrl:
    name = pattern.removeprefix("*.")
    if not name or any(c in name for c in "/?#*@"):
        return InvalidUrl("It is no host.")
    target = parse_url(f"https://{name}/")
    if isinstance(target, ParsedUrl) and target.address is not None and pattern.startswith("*."):
        return InvalidUrl("There is nothing below an address.")
    return target


@lru_cache(maxsize=1_024)
def _parse_pattern_port(pattern: str) -> int | None:
    """Return the port of a pattern. `None` means that it has none."""
    parsed = _parse_host_pattern(pattern)
    stated = re.search(r":(\d+)$", pattern.rpartition("]")[2] or pattern)
    return parsed.port if isinstance(parsed, ParsedUrl) and stated else None


def _is_covered(pattern: str, target: ParsedUrl, any_port: bool) -> bool:
    parsed, port = _parse_host_pattern(pattern), _parse_pattern_port(pattern)
    if isinstance(parsed, InvalidUrl):
        return False
    if target.port != (DEFAULT_PORTS[target.scheme] if port is None else port) and not (any_port and port is None):
        return False
    if pattern.startswith("*."):
        return target.host.endswith("." + parsed.host)
    return target.host == parsed.host
