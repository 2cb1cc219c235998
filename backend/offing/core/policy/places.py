"""Hosts and folders in a policy: the only home of what lies at or below which. Text only; no name and no file is looked
up, so a link on a disk is not followed here."""

import re
import unicodedata
from functools import lru_cache

from offing.core.url import LONGEST, PORTS, Refused, Target, target_of

LONGEST_PATH = 4_096
_MAIL = re.compile(r"[^@\s<>\"(),:;\\]+@([^@\s<>\"(),:;\\]+)")
_SCHEME = re.compile(
    r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]{1,2}|[/\\]{2}|(?:blob|data|file|javascript|mailto|sms|tel|wss?):).*",
    re.DOTALL | re.IGNORECASE,
)
_SCHEMED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BARE = re.compile(r"[^\s/@:]+(?:\.[^\s/@:.]+)+\.?(?::\d+)?(?:/\S*)?")


def host_problem(pattern: str) -> str:
    """Why this cannot stand in a policy. Empty: it can."""
    if isinstance(_place(pattern), Refused):
        return f"{pattern[:100]!r} is no host; write it like docs.example.org, *.example.org or docs.example.org:8443"
    return ""


def at_host(url: str, patterns: tuple[str, ...], *, any_port: bool) -> bool | None:
    """Whether an address is at one of these. None: it is no address that can be judged.

    `any_port`: a pattern without a port stands for all of them; else for the scheme's own.
    """
    target = _target(url)
    if isinstance(target, Refused):
        return None
    return any(_covers(pattern, target, any_port) for pattern in patterns)


def host_within(narrow: str, wide: str) -> bool:
    """Whether every place that `narrow` stands for in an allow rule is one that `wide` stands for there."""
    ours, theirs = _place(narrow), _place(wide)
    if isinstance(ours, Refused) or isinstance(theirs, Refused) or _port(narrow) != _port(wide):
        return False
    if not wide.startswith("*."):
        return not narrow.startswith("*.") and ours.host == theirs.host
    below = ours.host.endswith("." + theirs.host)
    return below or (narrow.startswith("*.") and ours.host == theirs.host)


def destination(text: str, *, bare: bool) -> str | None:
    """The host, or the whole e-mail address, that this text is. None: it is neither.

    What looks like an address and cannot be read is one of which nothing is known: the empty text. `bare`: names
    without a scheme count, too.
    """
    target = _target(text)
    if isinstance(target, Target):
        return target.host
    mail = _MAIL.fullmatch(text.strip())
    if mail:
        return text.strip().lower()
    if _SCHEME.fullmatch(text):
        return ""
    if not bare or not _BARE.fullmatch(text):
        return None
    target = target_of(f"https://{text}")
    return target.host if isinstance(target, Target) else ""


def folder_problem(root: str) -> str:
    """Why this cannot be the folder of a policy. Empty: it can."""
    if not root.startswith("/") or parts_of(root) is None:
        return f"{root[:100]!r} is no folder; write it from / on, with plain names, such as /data/reports"
    return ""


def inside(path: str, root: str, *, strict: bool) -> bool | None:
    """Whether a path is a folder or lies in it. None: it cannot be judged, such as one that goes up.

    `strict`: in an allow rule, where a relative path counts from the folder and letters are compared exactly. Otherwise
    a relative one cannot be judged, and case and spelling of letters make no difference.
    """
    parts, top = parts_of(path), parts_of(root)
    if parts is None or top is None:
        return None
    if not path.startswith("/"):
        return True if strict else None
    if not strict:
        parts, top = tuple(map(_plain, parts)), tuple(map(_plain, top))
    return parts[: len(top)] == top


def parts_of(path: str) -> tuple[str, ...] | None:
    """Names on the way. None: there is something in it that two readers could take for two different places."""
    return _parts(path) if 0 < len(path) <= LONGEST_PATH else None


@lru_cache(maxsize=256)
def _parts(path: str) -> tuple[str, ...] | None:
    if path.startswith(("~", "//")) or "\\" in path or "%" in path:
        return None
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in path):
        return None
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    doubtful = any(part.strip() != part or _dots(part) or _divided(part) for part in parts)
    return None if doubtful or _SCHEMED.match(path) else parts


def _divided(part: str) -> bool:
    """It could be read as two names."""
    return not {"/", "\\"}.isdisjoint(unicodedata.normalize("NFKC", part))


def _dots(part: str) -> bool:
    """Names that mean, or could be read as, the folder above."""
    return set(unicodedata.normalize("NFKC", part).strip()) == {"."}


def _plain(part: str) -> str:
    return unicodedata.normalize("NFKC", part).casefold()


def _target(text: str) -> Target | Refused:
    """As `target_of`; several rules ask for the same one."""
    return _remembered(text) if len(text) <= LONGEST else target_of(text)


@lru_cache(maxsize=256)
def _remembered(text: str) -> Target | Refused:
    return target_of(text)


@lru_cache(maxsize=1_024)
def _place(pattern: str) -> Target | Refused:
    name = pattern.removeprefix("*.")
    if not name or any(c in name for c in "/?#*@"):
        return Refused("It is no host.")
    target = target_of(f"https://{name}/")
    if isinstance(target, Target) and target.address is not None and pattern.startswith("*."):
        return Refused("There is nothing below an address.")
    return target


@lru_cache(maxsize=1_024)
def _port(pattern: str) -> int | None:
    """None: the pattern names none."""
    place = _place(pattern)
    stated = re.search(r":(\d+)$", pattern.rpartition("]")[2] or pattern)
    return place.port if isinstance(place, Target) and stated else None


def _covers(pattern: str, target: Target, any_port: bool) -> bool:
    place, port = _place(pattern), _port(pattern)
    if isinstance(place, Refused):
        return False
    if target.port != (PORTS[target.scheme] if port is None else port) and not (any_port and port is None):
        return False
    if pattern.startswith("*."):
        return target.host.endswith("." + place.host)
    return target.host == place.host
