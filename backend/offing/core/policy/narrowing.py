"""Whether a policy allows no more than another: the only home of what a run's policy may be narrowed to.

A narrowing is accepted only where it is proved. It knows nothing of who proposes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offing.core.policy.covering import catches, covers
from offing.core.policy.rules import Policy, Rule, named

MOST_PROPOSED = 100
"""Rules of one proposal."""

RULES = TypeAdapter(tuple[Rule, ...])


@dataclass(frozen=True, slots=True)
class Unproven:
    """Why a policy is not known to be narrower."""

    rule: str
    """Of the new policy what might allow more, or of the old one what is missing."""
    problem: str


def is_narrower(new: Policy, old: Policy) -> Unproven | None:
    """None: at every moment of a run, each call that `new` allows, or lets a person allow, `old` allows or lets a
    person allow, and what `old` leaves to a person `new` does not allow by itself."""
    for n, rule in enumerate(old.rules, 1):
        if rule.effect != "allow" and not _kept(rule, new):
            return Unproven(named(rule, n), "It is not in force any more, or not for every call that it stopped.")
    for n, rule in enumerate(new.rules, 1):
        if rule.effect in ("allow", "ask") and not _within(rule, old):
            return Unproven(named(rule, n), "It is not proved to admit only what one rule of the run's policy admits.")
    return None


def narrowed(old: Policy, proposed: Sequence[Rule]) -> Policy | Unproven:
    """The policy with a proposal in force: its allow rules take the place of the old ones of the same tools, and the
    rest of it is added. Unproven: it could allow more than `old`."""
    anew = {rule.tool for rule in proposed if rule.effect == "allow"}
    kept = [rule for rule in old.rules if rule.effect != "allow" or rule.tool not in anew]
    if len(kept) + len(proposed) > 500:
        return Unproven("", "It would have more than 500 rules.")
    new = Policy(rules=(*kept, *proposed))
    return is_narrower(new, old) or new


def proposed(policy: Policy | None, rules: Sequence[Mapping[str, Any]]) -> Policy | str:
    """The policy with a proposal in force that is JSON and may be a model's, or why the policy stays as it is."""
    if policy is None:
        return "The run has no valid tool policy; everything is denied already."
    if len(rules) > MOST_PROPOSED:
        return f"These are more than {MOST_PROPOSED} rules."
    try:
        found = narrowed(policy, RULES.validate_python(tuple(dict(rule) for rule in rules)))
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{found.rule}: {found.problem}" if isinstance(found, Unproven) else found


STOPS = {"forbid": ("forbid", "replace"), "replace": ("forbid", "replace"), "ask": ("forbid", "replace", "ask")}
"""What may stand for a rule that stops calls, and stop at least as much."""


def _kept(rule: Rule, new: Policy) -> bool:
    if not any(other.tool == rule.tool and other.effect in ("allow", "ask") for other in new.rules):
        return True  # the tool cannot be called at all
    return any(_stops(other, rule) for other in new.rules)


def _stops(other: Rule, rule: Rule) -> bool:
    """A person is asked in place of another question only where neither can be judged without the other."""
    alike = other.effect != "ask" or other.when == rule.when
    return other.effect in STOPS[rule.effect] and alike and catches(other, rule)


def _within(rule: Rule, old: Policy) -> bool:
    """Whether one old rule admits all that this one does. A person is asked within the same conditions or on top of
    an allow rule that has them."""
    if rule.effect == "allow":
        return any(other.effect == "allow" and covers(other, rule) for other in old.rules)
    return any(other.effect in ("allow", "ask") and _asks_within(rule, other) for other in old.rules)


def _asks_within(rule: Rule, old: Rule) -> bool:
    """The conditions of an ask rule are read more widely than those of an allow rule, so they must be of kinds that are
    read alike, or the old rule must ask, too."""
    if old.effect == "ask" and rule.when != old.when:
        return False
    alike = all(c.regex is None and c.host is None and c.path is None and not c.items for c in (*rule.when, *old.when))
    return (old.effect == "ask" or alike) and covers(old, rule)
