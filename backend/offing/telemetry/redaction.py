"""The only home of what counts as a secret in text, and of taking it out.

Three nets: values that the environment holds under a telling name, in the spellings that logs and wires give them
(base64 at any alignment, percent-encoded, JSON-escaped); shapes that are secrets wherever they stand; and fields whose
name says so. Knows no sink; logs, stored failures and exports all call `redact`.
"""

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

MASK = "[redacted]"

_TELLING = re.compile(r"(?:^|_)(?:\w*KEYS?|\w*TOKEN|\w*SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
_FIELD = re.compile(r"api[-_]?key|token$|secret|passw(?:or)?d|authorization|cookie|credential", re.IGNORECASE)
_SHORTEST = 8
"""Values shorter than this are as likely a setting as a secret, and their mask would hide ordinary words."""

_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|xox[abprs])[-_][A-Za-z0-9_-]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAIza[\w-]{30,}|\bA(?:KI|SI)A[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=Bearer )(?=\S*\d)[^\s\"',;]{6,}"
    r"|(?<=://)(?P<user>[^\s:/@]*):[^\s/@]+(?=@)"
    r"|(?P<field>\b(?:api[-_]?key|access_token|client_secret|password|authorization)[\"']?\s*[=:]\s*[\"']?(?:B\w+ )?)"
    r"[^\s\"'&,;]{6,}",
    re.IGNORECASE | re.DOTALL,
)

_last_read: tuple[dict[bytes, bytes], frozenset[str]] = ({}, frozenset())
"""The environment when its secrets were last worked out, and those secrets."""


def redact(text: str) -> str:
    """`text` with every known or likely secret replaced by a mask; the same text when there is none."""
    return redact_with(text, environment_secrets())


def redact_value(value: Any) -> Any:
    """JSON-like `value` without secrets: strings cleaned, fields masked whole whose name says that they are one.

    What JSON has no form for becomes its cleaned text.
    """
    return _cleaned(value, "", environment_secrets())


def without_secrets(value: Any) -> Any:
    """JSON-like `value` without the environment's secrets, in keys and values; the very same object if it has none.

    For what is stored as it was said: shapes and telling fields are left alone, since documents may speak of them.
    """
    spelled = _spelled(environment_secrets())
    return _freed(value, spelled) if spelled and _holds(value, spelled) else value


def environment_secrets() -> frozenset[str]:
    """Return the secrets that this process's environment holds now.

    They are worked out anew only when the environment has changed since the last call.
    """
    global _last_read
    now = vars(os.environ)["_data"]  # comparing this mapping costs half a microsecond; decoding each value costs thirty
    if now != _last_read[0]:
        _last_read = (dict(now), secret_values(os.environ))
    return _last_read[1]


def secret_values(env: Mapping[str, str]) -> frozenset[str]:
    """Secrets that an environment holds: values under telling names, and passwords inside addresses."""
    named = {value for name, value in env.items() if _TELLING.search(name)}
    inside = {word for value in env.values() if "://" in value and (word := _password(value))}
    return frozenset(value for value in named | inside if len(value) >= _SHORTEST)


def redact_with(text: str, secrets: frozenset[str]) -> str:
    """`redact` for secrets that come from elsewhere than the environment."""
    known = _known(secrets)
    return _shaped(known.sub(MASK, text) if known else text)


def _cleaned(value: Any, field: str, secrets: frozenset[str]) -> Any:
    match value:
        case str():
            return MASK if value and _FIELD.search(field) else redact_with(value, secrets)
        case dict():
            found: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return {key: _cleaned(item, str(key), secrets) for key, item in found.items()}
        case list() | tuple():
            items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return [_cleaned(item, field, secrets) for item in items]
        case int() | float() | None:
            return value
        case _:
            return redact_with(str(value), secrets)


def _password(address: str) -> str:
    """The password in an address. Empty: none, or one that equals its user and so tells nothing."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return "" if not parts.password or parts.password == parts.username else unquote(parts.password)


@lru_cache(maxsize=8)
def _spelled(secrets: frozenset[str]) -> tuple[str, ...]:
    """All spellings, longest first, so that none leaves the tail of another behind."""
    return tuple(sorted({form for secret in secrets for form in _spellings(secret)}, key=len, reverse=True))


@lru_cache(maxsize=8)
def _known(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """One pattern for all spellings."""
    spelled = _spelled(secrets)
    return re.compile("|".join(map(re.escape, spelled))) if spelled else None


def _holds(value: Any, spelled: tuple[str, ...]) -> bool:
    match value:
        case str():
            return any(form in value for form in spelled)
        case dict():
            return any(_holds(key, spelled) or _holds(item, spelled) for key, item in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case list() | tuple():
            return any(_holds(item, spelled) for item in value)  # pyright: ignore[reportUnknownVariableType]
        case _:
            return False


def _freed(value: Any, spelled: tuple[str, ...]) -> Any:
    match value:
        case str():
            return reduce(lambda text, form: text.replace(form, MASK), spelled, value)
        case dict():
            return {_freed(key, spelled): _freed(item, spelled) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case list() | tuple():
            return [_freed(item, spelled) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield secret.encode().hex()
    yield quote(secret, safe="")
    yield quote_plus(secret)
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for lead in range(3):
        form = _inner_base64(secret.encode(), lead)
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _inner_base64(secret: bytes, lead: int) -> str:
    """What `secret` alone decides in the base64 of a text that holds it `lead` bytes past a multiple of 3."""
    encoded = base64.b64encode(bytes(lead) + secret).decode().rstrip("=")
    start = (0, 2, 3)[lead]
    whole = (lead + len(secret)) * 8 // 6
    return encoded[start:whole]


def _shaped(text: str) -> str:
    return _SHAPES.sub(lambda match: (match["field"] or _kept(match["user"])) + MASK, text)


def _kept(user: str | None) -> str:
    return f"{user}:" if user is not None else ""
