"""What is wrong with a policy before any call is made: the only home of its static checks.

They find rules that can never decide and doors that stand open by mistake. A policy without findings can still be
unwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from offing.core.policy.covering import covers, shadows
from offing.core.policy.graph_tools import is_graph_tool
from offing.core.policy.rules import Condition, Policy, Rule, named
from offing.core.policy.trying import Unjudged, complaint
from offing.core.policy.wildcards import Problem, wildcard_problems
from offing.core.tool import Effect, ToolSpec


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    rule: str
    field: str
    """Where, such as `rules.2.when.0.arg`; counts from 0."""
    problem: str
    remedy: str


def findings(policy: Policy, tools: Mapping[str, ToolSpec]) -> tuple[Finding, ...]:
    """In the order of the rules. `tools`: all that the run could have, by name."""
    found: list[Finding] = []
    for n, rule in enumerate(policy.rules):
        name, place = named(rule, n + 1), f"rules.{n}"
        problems = [
            *_about_tool(rule, tools),
            *_about_conditions(rule),
            *wildcard_problems(rule),
            *_about_others(policy, n),
        ]
        found += [Finding(name, f"{place}{field}", problem, remedy) for field, problem, remedy in problems]
    return tuple(found)


def _about_tool(rule: Rule, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    if is_graph_tool(rule.tool):
        yield from _about_graph_tool(rule)
        return
    spec = tools.get(rule.tool)
    if spec is None:
        yield _no_tool(".tool", rule.tool, tools)
        return
    schema = spec.args.model_json_schema().get("properties", {})
    for n, condition in enumerate(rule.when):
        if condition.arg not in spec.args.model_fields:
            yield _no_arg(f".when.{n}.arg", spec, condition.arg)
        elif problem := _other_type(condition, schema.get(condition.arg, {})):
            yield f".when.{n}", problem, "Use a condition that fits the argument, or name another one."
    yield from _unnamed(rule, spec)
    yield from _substitute(rule, spec, tools)
    if rule.copies and not rule.reason:
        yield ".copies", "It lets text that was copied from untrusted sources go anywhere", "Say in `reason` why."
    if _stands_open(rule, spec):
        yield (
            ".when",
            f"It lets {spec.name} reach beyond the platform with whatever a model writes",
            "Limit an argument by host, path, regex, glob or one_of, or say in `reason` why not.",
        )


def _about_graph_tool(rule: Rule) -> Iterator[Problem]:
    """A tool of the graph's own declares nothing here, and its result has a form that only the graph knows."""
    if rule.instead is not None:
        yield ".instead", "No other call can stand in for one of a graph's own tools", "Give a message, or forbid it."
    if rule.copies and not rule.reason:
        yield ".copies", "It lets text that was copied from untrusted sources go anywhere", "Say in `reason` why."


def _unnamed(rule: Rule, spec: ToolSpec) -> Iterator[Problem]:
    """Arguments that are always there, with their defaults filled in, and that the rule does not admit."""
    conditioned = {condition.arg for condition in rule.when}
    missing = [name for name in spec.args.model_fields if name not in conditioned]
    if rule.effect in ("allow", "ask") and missing and not rule.others:
        yield (
            ".when",
            f"No call can meet it: it does not name {missing[0]!r}, which every call of {spec.name} has",
            "Name it in a condition, which may be without limits, or set others to true.",
        )


def _substitute(rule: Rule, spec: ToolSpec, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    if rule.instead is None:
        return
    other = tools.get(rule.instead.tool)
    if other is None:
        yield _no_tool(".instead.tool", rule.instead.tool, tools)
        return
    for n, given in enumerate(rule.instead.args):
        if given.arg not in other.args.model_fields:
            yield _no_arg(f".instead.args.{n}.arg", other, given.arg)
        if given.of is not None and given.of not in spec.args.model_fields:
            yield _no_arg(f".instead.args.{n}.of", spec, given.of)
    filled = {given.arg for given in rule.instead.args}
    for name, field in other.args.model_fields.items():
        if field.is_required() and name not in filled:
            yield ".instead.args", f"{other.name} needs {name!r}", f"Say where {name!r} comes from."


def _about_conditions(rule: Rule) -> Iterator[Problem]:
    """Conditions on one argument that no value meets."""
    if rule.most == 0 or rule.most_bytes == 0:
        yield ".most" if rule.most == 0 else ".most_bytes", "No call can meet it: it admits none", "Raise the limit."
    for n, condition in enumerate(rule.when):
        together = [other for other in rule.when if other.arg == condition.arg and other.items == condition.items]
        first = together[0] is condition
        if first and _contradictory(together, grants=rule.effect == "allow"):
            yield f".when.{n}", f"No value of {condition.arg!r} meets all that is said of it", "Drop a condition."


def _contradictory(together: list[Condition], *, grants: bool) -> bool:
    finite = next((c.one_of for c in together if c.one_of is not None), None)
    if finite is not None:
        return not any(all(_meets(c, value, grants) for c in together) for value in finite)
    least = max((c.min_length for c in together if c.min_length is not None), default=0)
    most = min((c.max_length for c in together if c.max_length is not None), default=least)
    low = max((c.minimum for c in together if c.minimum is not None), default=None)
    high = min((c.maximum for c in together if c.maximum is not None), default=low)
    sized = any(c.glob or c.regex or c.host or c.path or c.min_length or c.max_length is not None for c in together)
    mixed = sized and (low is not None or high is not None)
    return mixed or least > most or (low is not None and high is not None and low > high)


def _meets(condition: Condition, value: Any, grants: bool) -> bool:
    try:
        return not complaint(condition.model_copy(update={"items": False}), value, grants=grants)
    except Unjudged:
        return False


def _about_others(policy: Policy, n: int) -> Iterator[Problem]:
    """Whether other rules leave it nothing to decide."""
    rule = policy.rules[n]
    for m, other in enumerate(policy.rules):
        if m != n and other.tool == rule.tool and _decides_all(other, rule, earlier=m < n):
            yield (
                "",
                f"It is never reached: {named(other, m + 1)!r} decides every call that it is about",
                "Drop one of the two, or narrow the other.",
            )
            return


RANK = {"forbid": 0, "replace": 1, "ask": 2, "allow": 3}


def _decides_all(other: Rule, rule: Rule, *, earlier: bool) -> bool:
    if other.effect == "allow":
        return rule.effect == "allow" and covers(other, rule) and (earlier or not covers(rule, other))
    if other.effect == rule.effect:
        same = (other.when, other.tainted, other.effect) == (rule.when, rule.tainted, rule.effect)
        return same and earlier and other.effect != "ask"
    return RANK[other.effect] < RANK[rule.effect] and shadows(other, rule)


def _stands_open(rule: Rule, spec: ToolSpec) -> bool:
    """An allow rule, of a tool that reaches beyond the platform, that limits nothing and does not say why."""
    reaching = spec.outward or spec.foreign or spec.effect is not Effect.PURE
    return rule.effect == "allow" and reaching and not rule.reason and not any(map(_limits, rule.when))


def _limits(condition: Condition) -> bool:
    written = condition.glob is not None and condition.glob.strip("*") != ""
    return written or any(x is not None for x in (condition.one_of, condition.regex, condition.host, condition.path))


def _other_type(condition: Condition, schema: Mapping[str, Any]) -> str:
    """Why a condition can be tried on no value of this argument. Empty: it can, or the schema does not say."""
    kind = schema.get("type")
    if kind is None:
        return ""
    if condition.items and kind != "array":
        return f"{condition.arg!r} is no list"
    if condition.items:
        return ""
    if (condition.glob or condition.regex or condition.host or condition.path) and kind != "string":
        return f"{condition.arg!r} is no text"
    if (condition.minimum is not None or condition.maximum is not None) and kind not in ("integer", "number"):
        return f"{condition.arg!r} is no number"
    if (condition.min_length is not None or condition.max_length is not None) and kind not in ("string", "array"):
        return f"{condition.arg!r} has no length"
    return ""


def _no_tool(field: str, name: str, tools: Mapping[str, ToolSpec]) -> Problem:
    return field, f"The run has no tool {name!r}", f"Use one of: {', '.join(sorted(tools))}."


def _no_arg(field: str, spec: ToolSpec, name: str) -> Problem:
    return field, f"{spec.name} has no argument {name!r}", f"Use one of: {', '.join(spec.args.model_fields)}."
