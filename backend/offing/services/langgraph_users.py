"""The user of a project as it is stored with a run: what its handler says of it, without secrets.

A handler may return tokens with which the graph acts for the user. They are left out, because the record would keep
them. So is every value that contains what the user sent to be recognized.
"""

import hashlib
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from offing.services.langgraph_auth import AuthenticatedUser, AuthRequest
from offing.telemetry.redaction import may_be_secret

MIN_CREDENTIAL_CHARS = 8
"""A shorter value may be a common word."""

CREDENTIAL_HEADERS = (b"authorization", b"x-api-key", b"cookie", b"proxy-authorization")

HASH_PREFIX = "sha256:"


def select_run_user(user: AuthenticatedUser, request: AuthRequest) -> dict[str, Any]:
    """Return the fields of a user that are stored with its runs.

    An identity that is itself a secret, such as an API key, is replaced by its hash.
    """
    credentials = list_credentials(request)
    fields = _select_fields(user.as_mapping(), credentials)
    if "identity" not in fields:
        fields["identity"] = HASH_PREFIX + hashlib.sha256(user.identity.encode()).hexdigest()[:32]
        if fields.get("display_name") is None:
            fields["display_name"] = fields["identity"]
    return {**fields, "permissions": list(user.permissions)}


def list_credentials(request: AuthRequest) -> frozenset[str]:
    """Return what a request contains to be recognized: header values, and their parts."""
    sent = [value.decode("latin-1") for name, value in request.headers.items() if name in CREDENTIAL_HEADERS]
    parts = [part for value in sent for word in value.replace(";", " ").split() for part in (word, *word.split("=", 1))]
    return frozenset(one for one in (*sent, *parts) if len(one) >= MIN_CREDENTIAL_CHARS)


def _select_fields(fields: Mapping[str, Any], credentials: frozenset[str]) -> dict[str, Any]:
    selected = {str(name): _select(str(name), value, credentials) for name, value in fields.items()}
    return {name: value for name, value in selected.items() if value is not _LEFT_OUT}


_LEFT_OUT: Any = object()


def _select(name: str, value: Any, credentials: frozenset[str]) -> Any:
    """Return what is stored of a value. `_LEFT_OUT` means nothing."""
    match value:
        case str():
            is_bad = "\0" in value or any("\ud800" <= one <= "\udfff" for one in value)
            is_secret = may_be_secret(name, value) or any(one in value for one in credentials)
            return _LEFT_OUT if is_bad or is_secret else value
        case None | bool():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else _LEFT_OUT
        case float():
            return value if isfinite(value) else _LEFT_OUT
        case Mapping():
            if may_be_secret(name, ""):
                return _LEFT_OUT
            return _select_fields(cast(Mapping[str, Any], value), credentials)
        case list() | tuple():
            items = [_select(name, one, credentials) for one in cast(list[Any], value)]
            return [one for one in items if one is not _LEFT_OUT]
        case _:
            return _LEFT_OUT
