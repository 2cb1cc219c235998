"""Static checks of a tool policy, before any call is made.

They find rules that can never decide a call and rules that allow too much by mistake. A tool policy
without issues can still be unwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from offing.core.tool import SideEffect, ToolSpec
from offing.core.tool_policy.conditions import UndecidableError, explain_mismatch
from offing.core.tool_policy.graph_tools import is_graph_tool
from offing.core.tool_policy.rules import Condition, ToolPolicy, ToolRule, render_rule_name
from offing.core.tool_policy.subsumption import covers, shadows
from offing.core.tool_policy.wildcards import Problem, find_wildcard_problems


@dataclass(frozen=True, slots=True)
class ToolPolicyIssue:
    """One issue of a tool policy."""

    rule: str
    field: str
    """Path of the field, such as `rules.2.when.0.arg`, counted from 0."""
    problem: str
    remedy: str


def find_issues(tool_policy: ToolPolicy, tools: Mapping[str, ToolSpec]) -> tuple[ToolPolicyIssue, ...]:
    """Return the issues of a tool policy in the order of its rules.

    `tools` are all tools that the run could have, by name.
    """
    issues: list[ToolPolicyIssue] = []
    for n, rule in enumerate(tool_policy.rules):
        name, path = render_rule_name(rule, n + 1), f"rules.{n}"
        problems = [
            *_find_tool_problems(rule, tools),
            *_find_contradictions(rule),
            *find_wildcard_problems(rule),
            *_find_unreachable(tool_policy, n),
        ]
        issues += [ToolPolicyIssue(name, f"{path}{field}", problem, remedy) for field, problem, remedy in problems]
    return tuple(issues)


def _find_tool_problems(rule: ToolRule, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    if is_graph_tool(rule.tool):
        yield from _find_graph_tool_problems(rule)
        return
    spec = tools.get(rule.tool)
    if spec is None:
        yield _unknown_tool_problem(".tool", rule.tool, tools)
        return
    schema = spec.args.model_json_schema().get("properties", {})
    for n, condition in enumerate(rule.when):
        if condition.arg not in spec.args.model_fields:
            yield _unknown_arg_problem(f".when.{n}.arg", spec, condition.arg)
        elif problem := _find_type_mismatch(condition, schema.get(condition.arg, {})):
            yield f".when.{n}", problem, "Use a condition that fits the argument, or choose another argument."
    yield from _find_unnamed_args(rule, spec)
    yield from _find_substitute_problems(rule, spec, tools)
    if rule.allow_copied_text and not rule.reason:
        yield (
            ".allow_copied_text",
            "It allows text that was copied from untrusted sources to be sent anywhere",
            "Explain in `reason` why this is intended.",
        )
    if _is_unrestricted(rule, spec):
        yield (
            ".when",
            f"It allows {spec.name} to reach systems outside the platform with any arguments that a model writes",
            "Limit an argument by host, path, regex, glob or one_of, or explain in `reason` why no limit is needed.",
        )


def _find_graph_tool_problems(rule: ToolRule) -> Iterator[Problem]:
    """Yield the problems of a rule about a graph's own tool.

    The arguments of such a tool and the format of its result are unknown to the platform.
    """
    if rule.substitute is not None:
        yield (
            ".substitute",
            "A call of a graph's own tool cannot be replaced by another call",
            "Use a message, or the effect `forbid`.",
        )
    if rule.allow_copied_text and not rule.reason:
        yield (
            ".allow_copied_text",
            "It allows text that was copied from untrusted sources to be sent anywhere",
            "Explain in `reason` why this is intended.",
        )


def _find_unnamed_args(rule: ToolRule, spec: ToolSpec) -> Iterator[Problem]:
    """Yield a problem if the rule omits arguments that every call has.

    Arguments with defaults count, because the defaults are filled in.
    """
    conditioned = {condition.arg for condition in rule.when}
    missing = [name for name in spec.args.model_fields if name not in conditioned]
    if rule.effect in ("allow", "ask") and missing and not rule.allow_other_args:
        yield (
            ".when",
            f"No call can match it: it has no condition on {missing[0]!r}, which every call of {spec.name} contains",
            "Add a condition on it, which may be without limits, or set allow_other_args to true.",
        )


def _find_substitute_problems(rule: ToolRule, spec: ToolSpec, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    if rule.substitute is None:
        return
    other = tools.get(rule.substitute.tool)
    if other is None:
        yield _unknown_tool_problem(".substitute.tool", rule.substitute.tool, tools)
        return
    for n, source in enumerate(rule.substitute.args):
        if source.arg not in other.args.model_fields:
            yield _unknown_arg_problem(f".substitute.args.{n}.arg", other, source.arg)
        if source.from_arg is not None and source.from_arg not in spec.args.model_fields:
            yield _unknown_arg_problem(f".substitute.args.{n}.from_arg", spec, source.from_arg)
    filled = {arg.arg for arg in rule.substitute.args}
    for name, field in other.args.model_fields.items():
        if field.is_required() and name not in filled:
            yield ".substitute.args", f"{other.name} requires {name!r}", f"Specify the source of {name!r}."


def _find_contradictions(rule: ToolRule) -> Iterator[Problem]:
    """Yield problems of conditions on one argument that no value meets."""
    if rule.max_calls == 0 or rule.max_bytes == 0:
        yield (
            ".max_calls" if rule.max_calls == 0 else ".max_bytes",
            "No call can match it: it allows none",
            "Raise the limit.",
        )
    for n, condition in enumerate(rule.when):
        together = [other for other in rule.when if other.arg == condition.arg and other.items == condition.items]
        first = together[0] is condition
        if first and _is_contradictory(together, grants=rule.effect == "allow"):
            yield f".when.{n}", f"No value of {condition.arg!r} meets all conditions", "Remove a condition."


def _is_contradictory(conditions: list[Condition], *, grants: bool) -> bool:
    finite = next((c.one_of for c in conditions if c.one_of is not None), None)
    if finite is not None:
        return not any(all(_is_met(c, value, grants) for c in conditions) for value in finite)
    min_length = max((c.min_length for c in conditions if c.min_length is not None), default=0)
    max_length = min((c.max_length for c in conditions if c.max_length is not None), default=min_length)
    low = max((c.minimum for c in conditions if c.minimum is not None), default=None)
    high = min((c.maximum for c in conditions if c.maximum is not None), default=low)
    sized = any(c.glob or c.regex or c.host or c.path or c.min_length or c.max_length is not None for c in conditions)
    mixed = sized and (low is not None or high is not None)
    return mixed or min_length > max_length or (low is not None and high is not None and low > high)


def _is_met(condition: Condition, value: Any, grants: bool) -> bool:
    try:
        return not explain_mismatch(condition.model_copy(update={"items": False}), value, grants=grants)
    except UndecidableError:
        return False


def _find_unreachable(tool_policy: ToolPolicy, index: int) -> Iterator[Problem]:
    """Yield a problem if other rules decide every call that this rule is about."""
    rule = tool_policy.rules[index]
    for m, other in enumerate(tool_policy.rules):
        if m != index and other.tool == rule.tool and _is_shadowing(other, rule, earlier=m < index):
            yield (
                "",
                f"It has no effect: {render_rule_name(other, m + 1)!r} decides every call that it matches",
                "Remove one of the two rules, or restrict the other one.",
            )
            return


EFFECT_RANK = {"forbid": 0, "replace": 1, "ask": 2, "allow": 3}


def _is_shadowing(other: ToolRule, rule: ToolRule, *, earlier: bool) -> bool:
    if other.effect == "allow":
        return rule.effect == "allow" and covers(other, rule) and (earlier or not covers(rule, other))
    if other.effect == rule.effect:
        same = (other.when, other.when_tainted, other.effect) == (rule.when, rule.when_tainted, rule.effect)
        return same and earlier and other.effect != "ask"
    return EFFECT_RANK[other.effect] < EFFECT_RANK[rule.effect] and shadows(other, rule)


def _is_unrestricted(rule: ToolRule, spec: ToolSpec) -> bool:
    """Return whether a rule allows a tool without any restriction and without a reason.

    Only tools with side effects and tools that send data out or belong to a third party are considered.
    """
    reaching = spec.sends_data_out or spec.third_party or spec.side_effect is not SideEffect.PURE
    return rule.effect == "allow" and reaching and not rule.reason and not any(map(_is_restrictive, rule.when))


def _is_restrictive(condition: Condition) -> bool:
    written = condition.glob is not None and condition.glob.strip("*") != ""
    return written or any(x is not None for x in (condition.one_of, condition.regex, condition.host, condition.path))


def _find_type_mismatch(condition: Condition, schema: Mapping[str, Any]) -> str:
    """Explain why a condition can never be evaluated for this argument.

    An empty string means that it can, or that the schema does not say.
    """
    kind = schema.get("type")
    if kind is None:
        return ""
    if condition.items and kind != "array":
        return f"{condition.arg!r} is not a list"
    if condition.items:
        return ""
    if (condition.glob or condition.regex or condition.host or condition.path) and kind != "string":
        return f"{condition.arg!r} is not a string"
    if (condition.minimum is not None or condition.maximum is not None) and kind not in ("integer", "number"):
        return f"{condition.arg!r} is not a number"
    if (condition.min_length is not None or condition.max_length is not None) and kind not in ("string", "array"):
        return f"{condition.arg!r} has no length"
    return ""


def _unknown_tool_problem(field: str, name: str, tools: Mapping[str, ToolSpec]) -> Problem:
    return field, f"The run has no tool {name!r}", f"Use one of: {', '.join(sorted(tools))}."


def _unknown_arg_problem(field: str, spec: ToolSpec, name: str) -> Problem:
    return field, f"{spec.name} has no argument {name!r}", f"Use one of: {', '.join(spec.args.model_fields)}."
