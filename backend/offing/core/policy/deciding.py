"""Whether a run may make a tool call: the only home of the order of rules.

Forbid goes before replace, replace before ask, ask before allow, and what no rule allows is denied. Whatever cannot be
judged is denied, too. Pure; it reads no prompt and no clock.
"""

from collections.abc import Mapping
from typing import Any

from offing.core.policy.context import FRESH, PolicyContext
from offing.core.policy.copying import copied, strings_in
from offing.core.policy.decision import Decision, Replacement, Verdict, denied
from offing.core.policy.graph_tools import is_graph_tool
from offing.core.policy.places import destination
from offing.core.policy.rules import Condition, Kind, Policy, Rule, Substitute, named
from offing.core.policy.trying import Unjudged, complaint, well_formed
from offing.core.tool import ToolSpec
from offing.core.url import Refused, target_of


def decide(policy: Policy | None, spec: ToolSpec, args: Mapping[str, Any], context: PolicyContext = FRESH) -> Decision:
    """What happens to this call. `policy` None: it is denied like everything else."""
    if policy is None:
        return denied("The run has no valid tool policy.")
    try:
        return _Call(spec, args, context).decided(policy)
    except Unjudged as unjudged:
        return denied(str(unjudged))
    except Exception as error:  # a policy that fails in an unforeseen way must not let a call through
        return denied(f"The tool policy could not be evaluated ({type(error).__name__}).")


_LEAK = (
    "It would carry text that was copied from outside to {}, which neither the question nor a search has named. Search "
    "for it first, or write it without what was read."
)
_ASTRAY = (
    "{} holds text that was copied from outside, and neither the question nor a search has given this address. Search "
    "for the page, and take its address from the results."
)


class _Call:
    """One call, at one moment of its run."""

    def __init__(self, spec: ToolSpec, args: Mapping[str, Any], context: PolicyContext) -> None:
        self._spec, self._args, self._context = spec, args, context

    def decided(self, policy: Policy) -> Decision:
        well_formed(self._args)
        unknown = [name for name in self._args if name not in self._spec.args.model_fields]
        if unknown and not is_graph_tool(self._spec.name):  # what such a tool declares is not known here
            return denied(f"{self._spec.name} has no argument {unknown[0][:100]!r}.")
        rules = [(rule, named(rule, n)) for n, rule in enumerate(policy.rules, 1) if rule.tool == self._spec.name]
        if met := self._met(rules, "forbid"):
            rule, name = met[0]
            return denied(f"Rule {name!r} forbids it. {rule.reason}".strip(), name)
        if met := self._met(rules, "replace"):
            return self._replaced(*met[0])
        if met := self._met(rules, "ask"):
            return self._asked(met)
        return self._allowed(rules)

    def _met(self, rules: list[tuple[Rule, str]], effect: Kind) -> list[tuple[Rule, str]]:
        """Rules of this effect, other than allow, that the call meets. Raises where one of them cannot be tried."""
        return [(rule, name) for rule, name in rules if rule.effect == effect and self._meets(rule)]

    def _meets(self, rule: Rule) -> bool:
        return self._now(rule) and all(self._holds(condition) for condition in rule.when)

    def _holds(self, condition: Condition) -> bool:
        if condition.arg not in self._args:
            return condition.optional
        return not complaint(condition, self._args[condition.arg], grants=False)

    def _now(self, rule: Rule) -> bool:
        return rule.tainted is None or rule.tainted is self._context.tainted

    def _replaced(self, rule: Rule, name: str) -> Decision:
        if self._context.stands_in:
            return denied(f"It stands in for another call, and rule {name!r} would replace it again.", name)
        if rule.instead is None:
            return Decision(Verdict.REPLACE, name, rule.message)
        return Decision(Verdict.REPLACE, name, rule.reason, self._substitute(rule.instead))

    def _substitute(self, instead: Substitute) -> Replacement:
        taken = {g.arg: self._args[g.of] if g.of else g.value for g in instead.args if not g.of or g.of in self._args}
        return Replacement(instead.tool, taken)

    def _asked(self, met: list[tuple[Rule, str]]) -> Decision:
        """One rule that lets a person decide is enough."""
        limits = [(self._limit(rule), rule, name) for rule, name in met]
        for limit, rule, name in limits:
            if not limit:
                return Decision(Verdict.ASK, name, rule.reason)
        limit, _, name = limits[0]
        return denied(limit, name)

    def _allowed(self, rules: list[tuple[Rule, str]]) -> Decision:
        refusals: list[str] = []
        for rule, name in rules:
            if rule.effect == "allow":
                refusal = self._refusal(rule)
                if not refusal:
                    return Decision(Verdict.ALLOW, name)
                refusals.append(refusal)
        return denied(refusals[0] if refusals else f"No rule allows {self._spec.name}.")

    def _refusal(self, rule: Rule) -> str:
        """Why an allow rule does not admit this call. Empty: it does."""
        if not self._now(rule):
            return "It is not allowed before, or not after, the run has read text from outside."
        for condition in rule.when:
            if condition.arg not in self._args:
                if not condition.optional:
                    return f"{condition.arg}: it must be given."
            elif problem := _unmet(condition, self._args[condition.arg]):
                return f"{condition.arg}: {problem}"
        return self._limit(rule)

    def _limit(self, rule: Rule) -> str:
        """What a rule that lets calls through does not let through. Empty: nothing stands against it."""
        spec, context = self._spec, self._context
        if rule.most is not None and context.used.get(spec.name, 0) >= rule.most:
            return f"The run may call {spec.name} {rule.most} times, and it has."
        if rule.most_bytes is not None and context.received.get(spec.name, 0) >= rule.most_bytes:
            return f"{spec.name} may answer {rule.most_bytes} bytes in the run, and it has."
        conditioned = {condition.arg for condition in rule.when}
        loose = [name for name in self._args if name not in conditioned]
        if loose and not rule.others:
            return f"{loose[0]}: this argument is not part of what is allowed."
        return "" if rule.copies else self._leak()

    def _leak(self) -> str:
        """What was copied from untrusted text and would go somewhere new. Empty: nothing."""
        if self._context.seen.whole and not self._context.seen.shingles:
            return ""
        texts = [text for value in self._args.values() for text in strings_in(value)]
        places = [place for text in texts if (place := destination(text, bare=self._spec.outward)) is not None]
        new = [place for place in places if place not in self._context.known_hosts]
        if not new:
            return next((_ASTRAY.format(text[:200]) for text in texts if self._strays(text)), "")
        if not any(copied(text, self._context.seen) for text in texts):
            return ""
        return _LEAK.format(new[0] or "an address that cannot be read")

    def _strays(self, text: str) -> bool:
        """At a known host: an address that nobody gave, with something in it that was copied from untrusted text."""
        target = target_of(text)
        if isinstance(target, Refused) or target.url in self._context.known_addresses:
            return False
        return copied(target.path, self._context.seen)


def _unmet(condition: Condition, value: Any) -> str:
    """In an allow rule a value of another type is one that is not allowed."""
    try:
        return complaint(condition, value, grants=True)
    except Unjudged as unjudged:
        return str(unjudged)
