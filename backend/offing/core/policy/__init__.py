"""Whether a run may make a tool call: the only home of the tool policy's rules and of their order.

Forbid goes before allow, and what no rule allows is denied. Whatever cannot be judged is denied, too: an argument that
the tool does not declare, a value of an unexpected type, a missing policy. Pure; it reads no prompt and no clock.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from offing.core.policy.context import FRESH as FRESH
from offing.core.policy.context import PolicyContext as PolicyContext
from offing.core.tool import ToolSpec

LONGEST_GLOB = 200
MOST_STARS = 8
LONGEST_MATCHED = 4_096
"""Code points of a value that a glob is tried on; a longer one cannot be judged."""
DEEPEST = 16
"""Nesting of a call's arguments."""
LARGEST = 65_536
"""Values and code points of a call's arguments together."""

Scalar = str | int | float | bool | None


class _Unjudged(Exception):
    """A condition cannot be tried on this value."""


class Condition(BaseModel):
    """What one argument must be. All that is given here must hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    arg: str = Field(min_length=1, max_length=100)
    optional: bool = False
    """In an allow rule: the argument may be absent. An absent argument never meets a forbid rule's condition."""
    one_of: tuple[Scalar, ...] | None = None
    """Exactly one of these, of the same JSON type; a single one is a constant. None: any value."""
    glob: str | None = Field(default=None, min_length=1, max_length=LONGEST_GLOB)
    """For the whole string: `*` is any text, also none, `?` any one character. None: any string."""
    min_length: int | None = Field(default=None, ge=0)
    max_length: int | None = Field(default=None, ge=0)
    """Code points of a string, or items of a list."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    """Of a number, both included."""

    @field_validator("one_of", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    @field_validator("glob")
    @classmethod
    def _few_stars(cls, value: str | None) -> str | None:
        if value is not None and value.count("*") > MOST_STARS:
            raise ValueError(f"a glob has at most {MOST_STARS} stars; use several rules")
        return value

    @model_validator(mode="after")
    def _can_hold(self) -> "Condition":
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError("min_length is above max_length: no value can meet this")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError("minimum is above maximum: no value can meet this")
        if self.one_of == ():
            raise ValueError("one_of is empty: no value can meet this")
        return self


class Rule(BaseModel):
    """Allows or forbids calls of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=100)
    """Its exact name."""
    effect: Literal["allow", "forbid"] = "allow"
    when: tuple[Condition, ...] = Field(default=(), max_length=50)
    """All must hold. Empty: an allow rule admits a call without arguments, a forbid rule meets every call."""
    others: bool = False
    """In an allow rule: declared arguments that no condition names are accepted as they are."""
    most: int | None = Field(default=None, ge=0)
    """In an allow rule: calls of the tool in one run. None: any number."""
    name: str = Field(default="", max_length=100)
    """Shown with a decision. Empty: effect, tool and number."""

    @field_validator("when", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class Policy(BaseModel):
    """All rules of a run. Without rules nothing is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rules: tuple[Rule, ...] = Field(default=(), max_length=500)

    @field_validator("rules", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


NOTHING = Policy()
"""Denies everything."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call."""

    allowed: bool
    rule: str = ""
    """The rule that decided. Empty: none did."""
    reason: str = ""
    """Why it is denied, for a model or a person. Empty: it is allowed."""


def decide(policy: Policy | None, spec: ToolSpec, args: Mapping[str, Any], used: int = 0) -> Decision:
    """Whether this call may be made. `used`: calls of the tool that the run has made before. None: deny everything."""
    if policy is None:
        return Decision(False, reason="The run has no valid tool policy.")
    try:
        return _decided(policy, spec, args, used)
    except _Unjudged as unjudged:
        return Decision(False, reason=str(unjudged))
    except Exception as error:  # a policy that fails in an unforeseen way must not let a call through
        return Decision(False, reason=f"The tool policy could not be evaluated ({type(error).__name__}).")


def policy_of(stored: object) -> Policy | None:
    """A stored policy. None: it is missing or invalid, and everything is to be denied."""
    try:
        return Policy.model_validate(stored)
    except ValidationError:
        return None


def policy_hash(policy: Policy) -> str:
    """SHA-256 of the policy's canonical JSON, in hex."""
    canonical = json.dumps(policy.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def default_policy(*, web: bool = False) -> Policy:
    """The tools that come with the platform, and those of worlds, within the bounds of their own schemas.

    `web`: those that reach the web, too, for a run that was asked with it.
    """
    return Policy(
        rules=(
            Rule(
                tool="search_library",
                when=(_text("query", 500), Condition(arg="limit", optional=True, minimum=1, maximum=20)),
                most=MOST_CALLS,
            ),
            Rule(
                tool="read_source",
                when=(
                    _text("source", 1_000),
                    Condition(arg="start", optional=True, minimum=0, maximum=2**31 - 1),
                    Condition(arg="length", optional=True, minimum=1, maximum=6_000),
                ),
                most=MOST_CALLS,
            ),
            Rule(tool="calculate", when=(_text("expression", 500),), most=MOST_CALLS),
            *(
                Rule(tool=name, when=(_text("relation", 40), _text("entity", 100)), most=MOST_CALLS)
                for name in WORLD_TOOLS
            ),
            *(_WEB_RULES if web else ()),
        )
    )


WORLD_TOOLS = ("amber", "birch", "cobalt", "delta", "ember", "flint")
"""What a run that is set in a world has instead of the library. They read made-up knowledge and nothing else."""

MOST_CALLS = 4_096
"""Calls of one tool in one run under the default policy."""

MOST_WEB_CALLS = 512
"""The same of one that asks other people's servers."""


def _text(arg: str, longest: int) -> Condition:
    return Condition(arg=arg, glob="*", min_length=1, max_length=longest)


_WEB_RULES = (
    Rule(
        tool="web_search",
        when=(_text("query", 500), Condition(arg="limit", optional=True, minimum=1, maximum=20)),
        most=MOST_WEB_CALLS,
    ),
    Rule(
        tool="fetch_page",
        when=(
            Condition(arg="url", glob="http*://*", min_length=8, max_length=2_048),
            Condition(arg="start", optional=True, minimum=0, maximum=2**31 - 1),
            Condition(arg="length", optional=True, minimum=1, maximum=6_000),
        ),
        most=MOST_WEB_CALLS,
    ),
)


def _decided(policy: Policy, spec: ToolSpec, args: Mapping[str, Any], used: int) -> Decision:
    _well_formed(args)
    unknown = [name for name in args if name not in spec.args.model_fields]
    if unknown:
        return Decision(False, reason=f"{spec.name} has no argument {unknown[0][:100]!r}.")
    rules = [(rule, _name(rule, n)) for n, rule in enumerate(policy.rules, 1) if rule.tool == spec.name]
    for rule, name in rules:
        if rule.effect == "forbid" and _forbids(rule, args):
            return Decision(False, name, f"Rule {name!r} forbids it.")
    refusals: list[str] = []
    for rule, name in rules:
        if rule.effect == "allow":
            refusal = _refusal(rule, args, used)
            if not refusal:
                return Decision(True, name)
            refusals.append(refusal)
    return Decision(False, reason=refusals[0] if refusals else f"No rule allows {spec.name}.")


def _name(rule: Rule, number: int) -> str:
    return rule.name or f"{rule.effect} {rule.tool} #{number}"


def _forbids(rule: Rule, args: Mapping[str, Any]) -> bool:
    return all(c.arg in args and not _complaint(c, args[c.arg]) for c in rule.when)


def _refusal(rule: Rule, args: Mapping[str, Any], used: int) -> str:
    """Why an allow rule does not admit this call. Empty: it does."""
    if rule.most is not None and used >= rule.most:
        return f"The run may call {rule.tool} {rule.most} times, and it has."
    named = {c.arg for c in rule.when}
    loose = [name for name in args if name not in named]
    if loose and not rule.others:
        return f"{loose[0]}: this argument is not part of what is allowed."
    for condition in rule.when:
        if condition.arg not in args:
            if not condition.optional:
                return f"{condition.arg}: it must be given."
        elif complaint := _unmet(condition, args[condition.arg]):
            return f"{condition.arg}: {complaint}"
    return ""


def _unmet(condition: Condition, value: Any) -> str:
    """In an allow rule a value of another type is one that is not allowed."""
    try:
        return _complaint(condition, value)
    except _Unjudged as unjudged:
        return str(unjudged)


def _complaint(condition: Condition, value: Any) -> str:
    """Why a value does not meet a condition. Empty: it does. Raises when the condition cannot be tried on it."""
    if condition.one_of is not None and not any(_same(value, allowed) for allowed in condition.one_of):
        return "it is none of the values that are allowed."
    if condition.glob is not None and not _matches(condition.glob, value):
        return "it does not have the form that is allowed."
    if condition.min_length is not None and _length(value) < condition.min_length:
        return f"it must have a length of at least {condition.min_length}."
    if condition.max_length is not None and _length(value) > condition.max_length:
        return f"it must have a length of at most {condition.max_length}."
    if condition.minimum is not None and _number(value) < condition.minimum:
        return f"it must be at least {condition.minimum}."
    if condition.maximum is not None and _number(value) > condition.maximum:
        return f"it must be at most {condition.maximum}."
    return ""


def _same(value: Any, allowed: Scalar) -> bool:
    """Equal in JSON: true is not 1, "1" is not 1, and 1.0 is 1."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, int | float) and isinstance(allowed, int | float):
        return value == allowed
    return type(value) is type(allowed) and value == allowed


def _length(value: Any) -> int:
    if not isinstance(value, str | list):
        raise _Unjudged("It is neither text nor a list.")
    return len(value)  # pyright: ignore[reportUnknownArgumentType]


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Unjudged("It is not a number.")
    return value


def _matches(glob: str, value: Any) -> bool:
    """The whole text against a glob, by going back to the last star only: at most length times length of steps."""
    if not isinstance(value, str):
        raise _Unjudged("It is not text.")
    if len(value) > LONGEST_MATCHED:
        raise _Unjudged("It is too long to be judged.")
    at = g = 0
    star, mark = -1, 0
    while at < len(value):
        if g < len(glob) and glob[g] == "*":
            star, mark, g = g, at, g + 1
        elif g < len(glob) and glob[g] in {"?", value[at]}:
            at, g = at + 1, g + 1
        elif star >= 0:
            mark += 1
            at, g = mark, star + 1
        else:
            return False
    return not glob[g:].strip("*")


def _well_formed(args: Mapping[str, Any]) -> None:
    """Only JSON, of a bounded size, whose text can be stored."""
    left = LARGEST
    waiting: list[tuple[Any, int]] = [(dict(args), 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1 + (len(value) if isinstance(value, str) else 0)
        if left < 0 or depth > DEEPEST:
            raise _Unjudged("The arguments are too large to be judged.")
        waiting += [(inner, depth + 1) for inner in _inner(value)]


def _inner(value: Any) -> list[Any]:
    """What a JSON value holds. Raises for what is none."""
    match value:
        case dict():
            return [*value.keys(), *value.values()] if all(isinstance(k, str) for k in value) else _no_json()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        case list():
            return list(value)  # pyright: ignore[reportUnknownArgumentType]
        case str():
            return [] if _storable(value) else _no_json()
        case bool() | int() | None:
            return []
        case float() if math.isfinite(value):
            return []
        case _:
            return _no_json()


def _storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _no_json() -> list[Any]:
    raise _Unjudged("The arguments are not JSON that can be kept.")
