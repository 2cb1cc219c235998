"""Restriction of a tool policy: proves that a new tool policy allows no more than the old one.

A restriction is accepted only if it is proved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offing.core.tool_policy.rules import ToolPolicy, ToolRule, render_rule_name
from offing.core.tool_policy.subsumption import catches, covers

MAX_PROPOSED_RULES = 100
"""Maximum number of rules of one proposal."""

RULES_ADAPTER = TypeAdapter(tuple[ToolRule, ...])


@dataclass(frozen=True, slots=True)
class UnprovenRestriction:
    """Reason why a tool policy is not proved to be a restriction."""

    rule: str
    """Name of the rule that might allow more, or of the old rule that is missing."""
    problem: str


def find_unproven_restriction(new: ToolPolicy, old: ToolPolicy) -> UnprovenRestriction | None:
    """Return why it is not proved that `new` allows no more than `old`.

    `None` means that it is proved. At every moment of a run, each call that `new` allows or leaves to a
    person is one that `old` allows or leaves to a person. A call that `old` leaves to a person is not
    allowed by `new` on its own.
    """
    for n, rule in enumerate(old.rules, 1):
        if rule.effect != "allow" and not _is_in_force(rule, new):
            return UnprovenRestriction(
                render_rule_name(rule, n), "It is no longer in force, or not for every call that it blocked."
            )
    for n, rule in enumerate(new.rules, 1):
        if rule.effect in ("allow", "ask") and not _is_within_any(rule, old):
            return UnprovenRestriction(
                render_rule_name(rule, n),
                "It is not proved to allow only calls that one rule of the run's tool policy allows.",
            )
    return None


def apply_restriction(old: ToolPolicy, rules: Sequence[ToolRule]) -> ToolPolicy | UnprovenRestriction:
    """Return the tool policy with the proposed rules in force.

    Its allow rules replace the old ones of the same tools; all other rules are added. Returns
    UnprovenRestriction if the result could allow more than `old`.
    """
    anew = {rule.tool for rule in rules if rule.effect == "allow"}
    remaining = [rule for rule in old.rules if rule.effect != "allow" or rule.tool not in anew]
    if len(remaining) + len(rules) > 500:
        return UnprovenRestriction("", "It would have more than 500 rules.")
    new = ToolPolicy(rules=(*remaining, *rules))
    return find_unproven_restriction(new, old) or new


def parse_restriction(tool_policy: ToolPolicy | None, rules: Sequence[Mapping[str, Any]]) -> ToolPolicy | str:
    """Parse proposed rules, which may come from a model, and return the tool policy with them in force.

    Returns the reason as text if the tool policy stays unchanged.
    """
    if tool_policy is None:
        return "The run has no valid tool policy; everything is denied already."
    if len(rules) > MAX_PROPOSED_RULES:
        return f"The proposal has more than {MAX_PROPOSED_RULES} rules."
    try:
        restricted = apply_restriction(tool_policy, RULES_ADAPTER.validate_python(tuple(dict(rule) for rule in rules)))
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{restricted.rule}: {restricted.problem}" if isinstance(restricted, UnprovenRestriction) else restricted


STOPPING_EFFECTS = {
    "forbid": ("forbid", "replace"),
    "replace": ("forbid", "replace"),
    "ask": ("forbid", "replace", "ask"),
}
"""Effects that may replace the effect of a rule that stops calls, because they stop at least as much."""


def _is_in_force(rule: ToolRule, new: ToolPolicy) -> bool:
    if not any(other.tool == rule.tool and other.effect in ("allow", "ask") for other in new.rules):
        return True  # the tool cannot be called at all
    return any(_is_stopping(other, rule) for other in new.rules)


def _is_stopping(other: ToolRule, rule: ToolRule) -> bool:
    """Return whether another rule stops every call that this rule stops.

    An ask rule replaces another ask rule only if both have the same conditions.
    """
    alike = other.effect != "ask" or other.when == rule.when
    return other.effect in STOPPING_EFFECTS[rule.effect] and alike and catches(other, rule)


def _is_within_any(rule: ToolRule, old: ToolPolicy) -> bool:
    """Return whether one old rule admits every call that this rule admits.

    An ask rule may have the conditions of an old ask rule, or those of an old allow rule.
    """
    if rule.effect == "allow":
        return any(other.effect == "allow" and covers(other, rule) for other in old.rules)
    return any(other.effect in ("allow", "ask") and _is_ask_within(rule, other) for other in old.rules)


def _is_ask_within(rule: ToolRule, old: ToolRule) -> bool:
    """Return whether an ask rule stays within an old rule.

    The conditions of an ask rule are evaluated more widely than those of an allow rule. They must
    therefore be of kinds that are evaluated alike, or the old rule must be an ask rule, too.
    """
    if old.effect == "ask" and rule.when != old.when:
        return False
    alike = all(c.regex is None and c.host is None and c.path is None and not c.items for c in (*rule.when, *old.when))
    return (old.effect == "ask" or alike) and covers(old, rule)
