"""Limits of concurrent calls: of a stored provider, and of the addresses and providers that the operator names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from offing.core.errors import InvalidInput
from offing.models.api_base import ApiBase, parse_api_base

LIMITS_VARIABLE = "OFFING_MAX_CONCURRENT_CALLS"
"""Environment variable with the operator's limits, separated by commas: `ADDRESS=NUMBER` or `PROVIDER=NUMBER`."""

MAX_CONCURRENT_CALLS = 10_000
"""Largest limit that can be set."""
_EXAMPLE = "http://127.0.0.1:11434=1"
_PROVIDER = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How many calls may be made at the same time, in the whole installation."""

    scope: str
    """What the limit belongs to. Calls with the same scope are counted together."""
    max_calls: int
    """From 1."""


def check_call_limit(field: str, value: int | None) -> None:
    """Check the limit of a provider. `None` means no limit. Raises InvalidInput."""
    if value is not None and not 1 <= value <= MAX_CONCURRENT_CALLS:
        remedy = f"Use 1 to {MAX_CONCURRENT_CALLS}, or nothing for no limit."
        raise InvalidInput(field, f"{value} is out of range", remedy)


@lru_cache(maxsize=16)
def parse_call_limits(text: str) -> Mapping[ApiBase | str, int]:
    """Parse the operator's limits by address or provider. Raises InvalidInput that names the variable."""
    limits: dict[ApiBase | str, int] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = (one.strip() for one in part.rpartition("="))
        key = name if _PROVIDER.fullmatch(name) else parse_api_base(name)
        if key is None or not re.fullmatch(r"[1-9]\d{0,4}", number) or int(number) > MAX_CONCURRENT_CALLS:
            remedy = f"Use ADDRESS=NUMBER or PROVIDER=NUMBER, such as {_EXAMPLE}, from 1 to {MAX_CONCURRENT_CALLS}."
            raise InvalidInput(LIMITS_VARIABLE, f"{part[:200]!r} is not a limit", remedy)
        limits[key] = int(number)
    return limits


def find_operator_limit(
    provider: str, api_base: str, env: Mapping[str, str], *, is_stored: bool = False
) -> CallLimit | None:
    """Return the operator's limit for a call. `None` means that there is none.

    The limit of an address holds for all calls there and below it, of all tenants; the longest address wins. That of a
    provider holds for its other calls, except those through stored providers, which use the keys of tenants. Raises
    InvalidInput as `parse_call_limits`.
    """
    limits = parse_call_limits(env.get(LIMITS_VARIABLE, ""))
    base = parse_api_base(api_base) if api_base else None
    covering = [one for one in limits if isinstance(one, ApiBase) and base is not None and one.covers(base)]
    if covering:
        address = max(covering, key=lambda one: len(one.path))
        return CallLimit(f"address:{address}", limits[address])
    if provider in limits and not is_stored:
        return CallLimit(f"provider:{provider}", limits[provider])
    return None
