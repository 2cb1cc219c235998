"""Redaction: finding secrets in text and removing them.

Three rules find secrets. The first is the values of environment variables whose name indicates a
secret, and the stored keys that the current work has decrypted, in the forms in which they occur in
logs and requests (base64 at any alignment, percent-encoded, JSON-escaped). The second is patterns of
well-known tokens. The third is fields whose name indicates a secret. Logs, stored failures and
exports all call `redact`.
"""

import base64
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, cast
from urllib.parse import quote, quote_plus, unquote, urlsplit

from offing import environment

MASK = "[redacted]"

_SECRET_VARIABLE_NAME = re.compile(
    r"(?:^|_)(?:\w*KEYS?|\w*TOKEN|\w*SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)
_SECRET_FIELD_NAME = re.compile(
    r"api[-_]?key|token$|secret|passw(?:or)?d|authorization|cookie|credential", re.IGNORECASE
)
_MIN_SECRET_CHARS = 8
"""A shorter value is as likely a setting as a secret, and masking it would hide ordinary words."""

_SECRET_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|ofs|whsec|xox[abprs])[-_][A-Za-z0-9_-]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAIza[\w-]{30,}|\bA(?:KI|SI)A[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=Bearer )(?=\S*\d)[^\s\"',;]{6,}"
    r"|(?<=://)(?P<user>[^\s:/@]*):[^\s/@]+(?=@)"
    r"|(?P<field>\b(?:api[-_]?key|access_token|client_secret|password|authorization)[\"']?\s*[=:]\s*[\"']?(?:B\w+ )?)"
    r"[^\s\"'&,;]{6,}",
    re.IGNORECASE | re.DOTALL,
)

_cached_secrets: tuple[dict[bytes, bytes], frozenset[str]] = ({}, frozenset())
"""The environment when its secrets were last computed, and those secrets."""


@dataclass(slots=True)
class _BoundSecrets:
    """The secrets that the work in one context has used."""

    values: frozenset[str] = frozenset()
    combined: tuple[frozenset[str], frozenset[str], frozenset[str]] = (frozenset(), frozenset(), frozenset())
    """The environment's secrets, these secrets, and both together, when they were last combined."""


_bound_secrets: ContextVar[_BoundSecrets | None] = ContextVar("bound_secrets", default=None)


@contextmanager
def bind_secrets() -> Generator[None]:
    """Redact the secrets that work in the block remembers, also in tasks that the block has started.

    They do not affect other work of the process: otherwise, a tenant could store a common word as a key and have it
    removed from the records of others. A nested block belongs to the outer one.
    """
    if _bound_secrets.get() is not None:
        yield
        return
    token = _bound_secrets.set(_BoundSecrets())
    try:
        yield
    finally:
        _bound_secrets.reset(token)


def remember_secret(secret: str) -> None:
    """Redact a secret until the end of the current block of `bind_secrets`. Raises LookupError outside of one."""
    bound = _bound_secrets.get()
    if bound is None:
        raise LookupError("a secret is remembered outside of bind_secrets")
    if len(secret) >= _MIN_SECRET_CHARS:
        bound.values |= {secret}


def get_known_secrets() -> frozenset[str]:
    """Return the secrets in the environment and those that the current work remembers."""
    bound, of_environment = _bound_secrets.get(), get_environment_secrets()
    if bound is None or not bound.values:
        return of_environment
    if bound.combined[0] is not of_environment or bound.combined[1] is not bound.values:
        bound.combined = (of_environment, bound.values, of_environment | bound.values)
    return bound.combined[2]


def redact(text: str) -> str:
    """Replace every known or likely secret in `text` by a mask.

    Return the same text if there is none.
    """
    return redact_with(text, get_known_secrets())


def redact_value(value: Any) -> Any:
    """Redact a JSON-like value: redact its strings, and mask fields whose name indicates a secret.

    Values that JSON cannot represent become redacted text.
    """
    return _redact_nested(value, "", get_known_secrets())


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a field has the name of a secret, or its value contains a known or likely one."""
    return _SECRET_FIELD_NAME.search(name) is not None or redact(value) != value


def remove_secrets(value: Any) -> Any:
    """Remove the known secrets from the keys and values of a JSON-like value.

    Return the same object if there are none. Use it for text that is stored unchanged. Patterns
    and field names are not checked, since documents may contain them.
    """
    spelled = _list_spellings(get_known_secrets())
    return _remove_spellings(value, spelled) if spelled and _contains_secret(value, spelled) else value


def get_environment_secrets() -> frozenset[str]:
    """Return the secrets in the environment of this process.

    They are computed again only if the environment has changed since the last call.
    """
    global _cached_secrets
    now = environment.read_raw_variables()
    if now != _cached_secrets[0]:
        _cached_secrets = (dict(now), find_secrets(environment.VARIABLES))
    return _cached_secrets[1]


def find_secrets(env: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets in an environment.

    These are values of variables whose name indicates a secret, and passwords in URLs.
    """
    named = {value for name, value in env.items() if _SECRET_VARIABLE_NAME.search(name)}
    inside = {word for value in env.values() if "://" in value and (word := _password_in_url(value))}
    return frozenset(value for value in named | inside if len(value) >= _MIN_SECRET_CHARS)


def redact_with(text: str, secrets: frozenset[str]) -> str:
    """Redact like `redact`, with secrets that are not from the environment."""
    secret_pattern = _secret_pattern(secrets)
    return _redact_shapes(secret_pattern.sub(MASK, text) if secret_pattern else text)


def list_secret_spans(text: str, secrets: frozenset[str]) -> list[tuple[int, int]]:
    """Return where secrets stand in `text` in any spelling, as ranges of code points in order."""
    pattern = _secret_pattern(secrets)
    return [match.span() for match in pattern.finditer(text)] if pattern else []


def _redact_nested(value: Any, field: str, secrets: frozenset[str]) -> Any:
    match value:
        case str():
            return MASK if value and _SECRET_FIELD_NAME.search(field) else redact_with(value, secrets)
        case dict():
            mapping: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return {key: _redact_nested(item, str(key), secrets) for key, item in mapping.items()}
        case list() | tuple():
            items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return [_redact_nested(item, field, secrets) for item in items]
        case int() | float() | None:
            return value
        case _:
            return redact_with(str(value), secrets)


def _password_in_url(url: str) -> str:
    """Return the password in a URL. Empty if there is none or if it equals the user name."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return "" if not parts.password or parts.password == parts.username else unquote(parts.password)


@lru_cache(maxsize=256)
def _list_spellings(secrets: frozenset[str]) -> tuple[str, ...]:
    """Return all spellings of the secrets, longest first, so that no part of a longer one remains."""
    return tuple(sorted({form for secret in secrets for form in _spellings(secret)}, key=len, reverse=True))


@lru_cache(maxsize=256)
def _secret_pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Return one pattern for all spellings."""
    spelled = _list_spellings(secrets)
    return re.compile("|".join(map(re.escape, spelled))) if spelled else None


def _contains_secret(value: Any, spellings: tuple[str, ...]) -> bool:
    match value:
        case str():
            return any(form in value for form in spellings)
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return any(_contains_secret(key, spellings) or _contains_secret(item, spellings) for key, item in items)
        case list() | tuple():
            return any(_contains_secret(item, spellings) for item in value)  # pyright: ignore[reportUnknownVariableType]
        case _:
            return False


def _remove_spellings(value: Any, spellings: tuple[str, ...]) -> Any:
    match value:
        case str():
            return reduce(lambda text, form: text.replace(form, MASK), spellings, value)
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {_remove_spellings(key, spellings): _remove_spellings(item, spellings) for key, item in items}
        case list() | tuple():
            return [_remove_spellings(item, spellings) for item in value]  # pyright: ignore[reportUnknownVariableType]
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
    """Return the part of a text's base64 that depends on `secret` alone.

    The secret begins `lead` bytes after a multiple of 3.
    """
    encoded = base64.b64encode(bytes(lead) + secret).decode().rstrip("=")
    start = (0, 2, 3)[lead]
    whole = (lead + len(secret)) * 8 // 6
    return encoded[start:whole]


def _redact_shapes(text: str) -> str:
    return _SECRET_SHAPES.sub(lambda match: (match["field"] or _visible_user(match["user"])) + MASK, text)


def _visible_user(user: str | None) -> str:
    return f"{user}:" if user is not None else ""
