"""The tool policy as values: its rules and their conditions."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from offing.core.tool_policy.hosts_and_paths import find_folder_problem, find_host_problem
from offing.core.tool_policy.pattern import ANY_TEXT, compile_pattern, split_glob

MAX_GLOB_CHARS = 200
MAX_GLOB_STARS = 8

Scalar = str | int | float | bool | None
RuleEffect = Literal["allow", "ask", "replace", "forbid"]


def _list_to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


ListAsTuple = BeforeValidator(_list_to_tuple)
"""Accepts a list for a tuple, because stored JSON has lists."""


class Condition(BaseModel):
    """Condition on one argument. All restrictions that are set must hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    arg: str = Field(min_length=1, max_length=100)
    optional: bool = False
    """Whether the argument may be absent. An absent argument otherwise meets no condition."""
    items: bool = False
    """Whether the argument is a list and the restrictions apply to its items.

    In an allow rule all items must meet them, in every other rule one item is enough.
    """
    one_of: Annotated[tuple[Scalar, ...] | None, ListAsTuple] = None
    """Allowed values, compared with their JSON type. `None` means any value."""
    glob: str | None = Field(default=None, min_length=1, max_length=MAX_GLOB_CHARS)
    """Glob for the whole string. `None` means any string.

    `*` is any text, including none, `?` is any one character, and `[*]`, `[?]` and `[[]` are the
    characters `*`, `?` and `[`.
    """
    regex: str | None = Field(default=None, min_length=1)
    """Regular expression for the whole string, in the subset of `offing.core.tool_policy.pattern`.

    `None` means any string.
    """
    host: Annotated[tuple[str, ...] | None, ListAsTuple] = Field(default=None, max_length=100)
    """Hosts of a URL: `docs.example.org`, or `*.example.org` for all subdomains.

    Add `:8443` for another port than the default of the scheme. In rules that do not allow, a host
    without a port means all its ports.
    """
    path: str | None = Field(default=None, min_length=1, max_length=500)
    """Folder that must contain the file or folder, or be equal to it. A relative path counts from it.
    `None` means any string.
    """
    min_length: int | None = Field(default=None, ge=0)
    max_length: int | None = Field(default=None, ge=0)
    """Number of code points of a string, or of items of a list."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    """Bounds of a number, both inclusive."""

    @field_validator("glob")
    @classmethod
    def _check_stars(cls, value: str | None) -> str | None:
        if value is not None and split_glob(value).count(ANY_TEXT) > MAX_GLOB_STARS:
            raise ValueError(f"a glob can have at most {MAX_GLOB_STARS} stars; use several rules")
        return value

    @field_validator("regex")
    @classmethod
    def _check_regex(cls, value: str | None) -> str | None:
        if value is not None:
            compile_pattern(value, True)
        return value

    @field_validator("host")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for host in value or ():
            if problem := find_host_problem(host):
                raise ValueError(problem)
        return value

    @field_validator("path")
    @classmethod
    def _check_folder(cls, value: str | None) -> str | None:
        if value is not None and (problem := find_folder_problem(value)):
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _check_satisfiable(self) -> "Condition":
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError("min_length is greater than max_length, so no value can match")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError("minimum is greater than maximum, so no value can match")
        if self.one_of == () or self.host == ():
            raise ValueError("an empty list allows no values")
        return self


class ArgumentSource(BaseModel):
    """Source of an argument of a substitute call: an argument of the original call or a fixed value."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    arg: str = Field(min_length=1, max_length=100)
    from_arg: str | None = Field(default=None, min_length=1, max_length=100)
    """Argument of the original call.

    `None` means that `value` is used. If the call does not have it, it is left out.
    """
    value: Scalar = None

    @model_validator(mode="after")
    def _check_one_source(self) -> "ArgumentSource":
        if self.from_arg is not None and self.value is not None:
            raise ValueError("it has both `value` and `from_arg`; use only one of them")
        return self


class Substitute(BaseModel):
    """Call that is made instead. The same tool policy decides it, and it is not replaced again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=100)
    args: Annotated[tuple[ArgumentSource, ...], ListAsTuple] = Field(default=(), max_length=50)


class ToolRule(BaseModel):
    """Rule that decides calls of one tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=100)
    """Exact name of the tool."""
    effect: RuleEffect = "allow"
    when: Annotated[tuple[Condition, ...], ListAsTuple] = Field(default=(), max_length=50)
    """Conditions that must all hold.

    Without conditions, an allow rule admits only a call without arguments, and every other rule matches
    every call.
    """
    allow_other_args: bool = False
    """Whether declared arguments without a condition are accepted unchanged. For allow and ask rules."""
    when_tainted: bool | None = None
    """`True` applies the rule only after untrusted text has entered the run's context.

    `False` applies it only before. `None` means always.
    """
    max_calls: int | None = Field(default=None, ge=0)
    """Maximum number of calls of the tool in one run. `None` means no limit. For allow and ask rules."""
    max_bytes: int | None = Field(default=None, ge=0)
    """Number of bytes that the tool may return in one run before further calls are denied.

    `None` means no limit. For allow and ask rules.
    """
    allow_copied_text: bool = False
    """Whether text that was copied from untrusted content may be sent to a host that is new to the run.
    For allow and ask rules.
    """
    message: str = Field(default="", max_length=1_000)
    """Message to the model in place of the call. For replace rules."""
    substitute: Substitute | None = None
    """Call that is made instead. A replace rule has either this or a message."""
    reason: str = Field(default="", max_length=500)
    """Reason for the rule, for people. A decision by a forbid or ask rule shows it."""
    name: str = Field(default="", max_length=100)
    """Name that a decision shows. Empty means that effect, tool and number are shown."""

    @model_validator(mode="after")
    def _check_effect(self) -> "ToolRule":
        grants = {
            "allow_other_args": self.allow_other_args,
            "max_calls": self.max_calls,
            "max_bytes": self.max_bytes,
            "allow_copied_text": self.allow_copied_text,
        }
        if self.effect in ("forbid", "replace"):
            for field, value in grants.items():
                if value is not None and value is not False:
                    raise ValueError(
                        f"{field} is only allowed in allow and ask rules; remove it from the {self.effect} rule"
                    )
        if (self.effect == "replace") != (bool(self.message) != (self.substitute is not None)):
            raise ValueError("a replace rule must have either `message` or `substitute`")
        if self.effect != "replace" and (self.message or self.substitute is not None):
            raise ValueError(
                "`message` and `substitute` are only allowed in replace rules; use `reason` to give a reason"
            )
        return self


class ToolPolicy(BaseModel):
    """All rules of a run. Without rules nothing is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rules: Annotated[tuple[ToolRule, ...], ListAsTuple] = Field(default=(), max_length=500)

    @property
    def offered_tools(self) -> frozenset[str]:
        """Tools that have at least one rule that does not forbid them."""
        return frozenset(rule.tool for rule in self.rules if rule.effect != "forbid")

    @property
    def limits_bytes(self) -> bool:
        """Whether a rule limits how many bytes a tool may return."""
        return any(rule.max_bytes is not None for rule in self.rules)

    def to_json(self) -> dict[str, object]:
        """Return the tool policy as JSON without default values."""
        return self.model_dump(mode="json", exclude_defaults=True)


DENY_ALL = ToolPolicy()
"""A tool policy that denies every call."""


def parse_stored_policy(stored: object) -> ToolPolicy | None:
    """Parse a stored tool policy.

    `None` means that it is missing or invalid, and that every call must be denied.
    """
    try:
        return ToolPolicy.model_validate(stored)
    except ValidationError:
        return None


def hash_tool_policy(tool_policy: ToolPolicy) -> str:
    """Return the SHA-256 of the tool policy's canonical JSON in hex."""
    canonical = json.dumps(tool_policy.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def render_rule_name(rule: ToolRule, number: int) -> str:
    """Return the name of a rule. `number` counts from 1."""
    return rule.name or f"{rule.effect} {rule.tool} #{number}"
