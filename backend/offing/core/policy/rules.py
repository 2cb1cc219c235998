"""What a tool policy is made of: the only home of its conditions and rules as values. It does not know how they
decide."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from offing.core.policy.pattern import ANY_TEXT, compiled, glob_parts
from offing.core.policy.places import folder_problem, host_problem

LONGEST_GLOB = 200
MOST_STARS = 8

Scalar = str | int | float | bool | None
Kind = Literal["allow", "ask", "replace", "forbid"]


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


Listed = BeforeValidator(_tuple)
"""Stored JSON has lists."""


class Condition(BaseModel):
    """What one argument must be. All that is given here must hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    arg: str = Field(min_length=1, max_length=100)
    optional: bool = False
    """The argument may be absent. Otherwise an absent one meets no condition."""
    items: bool = False
    """The argument is a list, and the rest is said of its items: in an allow rule of each, elsewhere of any."""
    one_of: Annotated[tuple[Scalar, ...] | None, Listed] = None
    """Exactly one of these, of the same JSON type; a single one is a constant. None: any value."""
    glob: str | None = Field(default=None, min_length=1, max_length=LONGEST_GLOB)
    """For the whole string: `*` is any text, also none, `?` any one character, and `[*]`, `[?]` and `[[]` are the
    characters `*`, `?` and `[`. None: any string."""
    regex: str | None = Field(default=None, min_length=1)
    """For the whole string, in the subset of `offing.core.policy.pattern`. None: any string."""
    host: Annotated[tuple[str, ...] | None, Listed] = Field(default=None, max_length=100)
    """A web address at one of these: `docs.example.org`, or `*.example.org` for whatever is below it, with `:8443` for
    another port than the scheme's own. In rules that do not allow, a place without a port stands for all its ports."""
    path: str | None = Field(default=None, min_length=1, max_length=500)
    """A file or folder inside this folder, or the folder itself; what is relative counts from it. None: any string."""
    min_length: int | None = Field(default=None, ge=0)
    max_length: int | None = Field(default=None, ge=0)
    """Code points of a string, or items of a list."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    """Of a number, both included."""

    @field_validator("glob")
    @classmethod
    def _few_stars(cls, value: str | None) -> str | None:
        if value is not None and glob_parts(value).count(ANY_TEXT) > MOST_STARS:
            raise ValueError(f"a glob has at most {MOST_STARS} stars; use several rules")
        return value

    @field_validator("regex")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is not None:
            compiled(value, True)
        return value

    @field_validator("host")
    @classmethod
    def _places(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for place in value or ():
            if problem := host_problem(place):
                raise ValueError(problem)
        return value

    @field_validator("path")
    @classmethod
    def _folder(cls, value: str | None) -> str | None:
        if value is not None and (problem := folder_problem(value)):
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _can_hold(self) -> "Condition":
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError("min_length is above max_length: no value can meet this")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError("minimum is above maximum: no value can meet this")
        if self.one_of == () or self.host == ():
            raise ValueError("a list of what is allowed is empty: no value can meet this")
        return self


class Given(BaseModel):
    """Where an argument of a substitute comes from: `of`, an argument of the call, or a fixed `value`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    arg: str = Field(min_length=1, max_length=100)
    of: str | None = Field(default=None, min_length=1, max_length=100)
    """None: it is `value`. Absent in the call: it is left out."""
    value: Scalar = None

    @model_validator(mode="after")
    def _one_origin(self) -> "Given":
        if self.of is not None and self.value is not None:
            raise ValueError("it has both a value and an argument that it is taken of; keep one")
        return self


class Substitute(BaseModel):
    """The call that is made instead. It is judged by the same policy, and is not replaced again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=100)
    args: Annotated[tuple[Given, ...], Listed] = Field(default=(), max_length=50)


class Rule(BaseModel):
    """What happens to calls of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=100)
    """Its exact name."""
    effect: Kind = "allow"
    when: Annotated[tuple[Condition, ...], Listed] = Field(default=(), max_length=50)
    """All must hold. Empty: an allow rule admits a call without arguments, every other rule meets every call."""
    others: bool = False
    """In an allow or ask rule: declared arguments that no condition names are accepted as they are."""
    tainted: bool | None = None
    """True: only once untrusted text is in the run's context. False: only until then. None: always."""
    most: int | None = Field(default=None, ge=0)
    """In an allow or ask rule: calls of the tool in one run. None: any number."""
    most_bytes: int | None = Field(default=None, ge=0)
    """In an allow or ask rule: no more calls once the tool has answered this many bytes in one run. None: any."""
    copies: bool = False
    """In an allow or ask rule: what was copied from untrusted text may go to a host that is new to the run."""
    message: str = Field(default="", max_length=1_000)
    """In a replace rule: what the model is told, and no call is made."""
    instead: Substitute | None = None
    """In a replace rule: the call that is made. A replace rule has either this or a message."""
    reason: str = Field(default="", max_length=500)
    """Why there is this rule, for a person; a forbid or ask rule's is shown with its decision."""
    name: str = Field(default="", max_length=100)
    """Shown with a decision. Empty: effect, tool and number."""

    @model_validator(mode="after")
    def _fits_its_effect(self) -> "Rule":
        grants = {"others": self.others, "most": self.most, "most_bytes": self.most_bytes, "copies": self.copies}
        if self.effect in ("forbid", "replace"):
            for field, value in grants.items():
                if value is not None and value is not False:
                    raise ValueError(f"{field} belongs to allow and ask rules; leave it out of a {self.effect} rule")
        if (self.effect == "replace") != (bool(self.message) != (self.instead is not None)):
            raise ValueError("a replace rule, and no other, has either a message or `instead`")
        if self.effect != "replace" and (self.message or self.instead is not None):
            raise ValueError("message and instead belong to replace rules; a reason can be given as `reason`")
        return self


class Policy(BaseModel):
    """All rules of a run. Without rules nothing is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rules: Annotated[tuple[Rule, ...], Listed] = Field(default=(), max_length=500)

    @property
    def offered(self) -> frozenset[str]:
        """Tools of which not every call is denied."""
        return frozenset(rule.tool for rule in self.rules if rule.effect != "forbid")

    @property
    def counts_bytes(self) -> bool:
        """Whether a rule limits what a tool may answer."""
        return any(rule.most_bytes is not None for rule in self.rules)

    def stored(self) -> dict[str, object]:
        """As JSON, without what is at its default."""
        return self.model_dump(mode="json", exclude_defaults=True)


NOTHING = Policy()
"""Denies everything."""


def policy_of(stored: object) -> Policy | None:
    """A stored policy. None: it is missing or invalid, and everything is to be denied."""
    try:
        return Policy.model_validate(stored)
    except ValidationError:
        return None


def policy_hash(policy: Policy) -> str:
    """SHA-256 of the policy's canonical JSON, in hex."""
    canonical = json.dumps(policy.stored(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def named(rule: Rule, number: int) -> str:
    """What a rule is called; `number` counts from 1."""
    return rule.name or f"{rule.effect} {rule.tool} #{number}"
