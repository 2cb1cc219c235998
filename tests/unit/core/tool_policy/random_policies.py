"""Policies, calls and moments of runs by chance. Small values, so that rules and calls often touch.

Plain seeded chance, since ten thousand pairs are to take seconds; a pair that fails is small enough to be read.
"""

from random import Random
from typing import Any

from pydantic import BaseModel

from offing.core.tool import ToolSpec
from offing.core.tool_policy import (
    ArgumentSource,
    Condition,
    Substitute,
    ToolCallContext,
    ToolPolicy,
    ToolRule,
    UntrustedShingles,
)
from offing.core.tool_policy.rules import RuleEffect
from tests.unit.core.tool_policy.samples import FOLDERS, HOSTS, LOCATIONS, PATHS, READ, REGEXES, TEXTS


class Args(BaseModel):
    url: str = ""
    path: str = ""
    count: int = 1
    tags: list[str] = []
    extra: dict[str, Any] = {}


SPEC = ToolSpec("fetch", "Fetches.", Args, "fetch")
NAMES = ("url", "path", "count", "tags")
KINDS: tuple[RuleEffect, ...] = ("allow", "allow", "allow", "ask", "replace", "forbid")
STOPPING: tuple[RuleEffect, ...] = ("forbid", "replace", "ask")
MAYBE = (None, None, None, 0, 1, 2)
INSTEAD = Substitute(
    tool="fetch", args=(ArgumentSource(arg="url", from_arg="url"), ArgumentSource(arg="count", value=1))
)
USER_URLS = ("https://a.example/the+harbour+master", "https://evil.net/?q=the+harbour+master")
PARTS = ("one_of", "glob", "regex", "host", "path", "length", "bounds")
SEEN = UntrustedShingles().add_texts(READ)


def scalar(chance: Random) -> Any:
    others: list[Any] = [-1, 0, 1, 2, 3, None, True, False, 1.0]
    return chance.choice(TEXTS) if chance.random() < 0.6 else chance.choice(others)


def value(chance: Random, arg: str = "") -> Any:
    """What fits the argument's conditions more often than not."""
    draw = chance.random()
    if draw < 0.5 and arg in ("url", "path"):
        return chance.choice(list(LOCATIONS if arg == "url" else PATHS))
    if draw < 0.5 and arg == "count":
        return chance.randint(-1, 3)
    if draw < 0.75:
        return scalar(chance)
    return {"a": scalar(chance)} if draw > 0.95 else [scalar(chance) for _ in range(chance.randint(0, 2))]


def args(chance: Random) -> dict[str, Any]:
    names = [*(name for name in NAMES if chance.random() < 0.45), *(["surprise"] if chance.random() < 0.03 else [])]
    return {name: value(chance, name) for name in names}


def condition(chance: Random, arg: str | None = None) -> Condition:
    arg = arg or chance.choice(NAMES)
    messages: dict[str, Any] = {"arg": arg, "optional": chance.random() < 0.5, "items": chance.random() < 0.15}
    fitting = {"url": PARTS[:6], "path": PARTS[:6], "count": ("one_of", "bounds"), "tags": PARTS}[arg]
    for part in chance.sample(fitting, chance.randint(0, 2)):
        messages |= random_condition(part, chance)
    return Condition(**messages)


def random_condition(part: str, chance: Random) -> dict[str, Any]:
    match part:
        case "one_of":
            return {"one_of": tuple(scalar(chance) for _ in range(chance.randint(1, 4)))}
        case "glob":
            return {"glob": chance.choice(["*", "a*", "?", "*b", "https://*", "/data/*", "*harbour*", "*[?]*", "[[]*"])}
        case "regex":
            return {"regex": chance.choice(REGEXES)}
        case "host":
            return {"host": tuple(chance.sample(HOSTS, chance.randint(1, 2)))}
        case "path":
            return {"path": chance.choice(FOLDERS)}
        case "length":
            return {"min_length": chance.randint(0, 1), "max_length": chance.randint(1, 40)}
        case _:
            return {"minimum": chance.randint(-1, 1), "maximum": chance.randint(1, 3)}


def rule(chance: Random, kinds: tuple[RuleEffect, ...] = KINDS) -> ToolRule:
    kind = chance.choice(kinds)
    messages: dict[str, Any] = {"when_tainted": chance.choice([None, None, None, None, True, False])}
    if kind in ("allow", "ask"):
        messages |= {"allow_other_args": chance.random() < 0.7, "allow_copied_text": chance.random() < 0.3}
        messages |= {"max_calls": chance.choice(MAYBE), "max_bytes": chance.choice(MAYBE)}
    if kind == "replace":
        messages |= chance.choice([{"message": "No."}, {"substitute": INSTEAD}])
    when = tuple(condition(chance) for _ in range(chance.choice([0, 1, 1, 1, 2, 3])))
    return ToolRule(tool=chance.choice(["fetch"] * 5 + ["other"]), effect=kind, when=when, **messages)


def policy(chance: Random, maximum: int = 4) -> ToolPolicy:
    return ToolPolicy(rules=tuple(rule(chance) for _ in range(chance.randint(0, maximum))))


def moment(chance: Random) -> tuple[ToolCallContext, str]:
    """A run's moment, and the untrusted text that it has read."""
    read = chance.random() < 0.5
    context = ToolCallContext(
        call_counts={"fetch": chance.choice([0, 0, 0, 1, 2])},
        received_bytes={"fetch": chance.choice([0, 0, 0, 1, 2])},
        is_tainted=chance.random() < 0.5,
        untrusted_shingles=SEEN if read else UntrustedShingles(),
        known_hosts=frozenset(host for host in ("a.example", "evil.net") if chance.random() < 0.5),
        known_urls=frozenset(address for address in USER_URLS if chance.random() < 0.3),
        is_substitute=chance.random() < 0.2,
    )
    return context, READ if read else ""
