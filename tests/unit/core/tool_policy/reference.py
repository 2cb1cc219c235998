"""The tool policy a second time, from its documentation alone: slow, in three values, and by other means.

Every rule is tried to the end and gets a finding; only then are the findings weighed. Regular expressions are Python's,
hosts and folders are looked up in tables of samples, and copies are found by comparing all ranges.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from offing.core.tool_policy import Condition, ToolCallContext, ToolPolicy, ToolRule
from tests.unit.core.tool_policy.samples import LOCATIONS, PATHS

YES, NO, UNCLEAR = "yes", "no", "unclear"


def verdict(
    policy: ToolPolicy, tool: str, declared: set[str], args: Mapping[str, Any], context: ToolCallContext, read: str
) -> str:
    """allow, deny, ask or replace. `read`: the untrusted text that the run has seen."""
    if not set(args) <= declared:
        return "deny"
    rules = [rule for rule in policy.rules if rule.tool == tool]
    collected = {kind: [(r, finding(r, args, context)) for r in rules if r.effect == kind] for kind in KINDS}
    for kind in ("forbid", "replace", "ask"):
        results = [result for _, result in collected[kind]]
        if UNCLEAR in results:
            return "deny"
        met = [rule for rule, result in collected[kind] if result == YES]
        if met and kind == "forbid":
            return "deny"
        if met and kind == "replace":
            return "deny" if context.is_substitute else "replace"
        if met:
            return "ask" if any(passes(rule, args, context, read) for rule in met) else "deny"
    admitted = [rule for rule, result in collected["allow"] if result == YES]
    return "allow" if any(passes(rule, args, context, read) for rule in admitted) else "deny"


DOT = re.compile(r"(?<!\\)\.")
BREAKS = "\n\r\v\f\x85\u2028\u2029"
KINDS = ("forbid", "replace", "ask", "allow")


def finding(rule: ToolRule, args: Mapping[str, Any], context: ToolCallContext) -> str:
    if rule.when_tainted is not None and rule.when_tainted != context.is_tainted:
        return NO
    for condition in rule.when:
        if condition.arg in args:
            result = of_value(condition, args[condition.arg], rule.effect == "allow")
        else:
            result = YES if condition.optional else NO
        if result != YES:
            return result
    return YES


def passes(rule: ToolRule, args: Mapping[str, Any], context: ToolCallContext, read: str) -> bool:
    """What an allow or ask rule wants beyond its conditions."""
    few = rule.max_calls is None or context.call_counts.get(rule.tool, 0) < rule.max_calls
    little = rule.max_bytes is None or context.received_bytes.get(rule.tool, 0) < rule.max_bytes
    known = rule.allow_other_args or set(args) <= {condition.arg for condition in rule.when}
    return few and little and known and (rule.allow_copied_text or not leaks(args, context, read))


def leaks(args: Mapping[str, Any], context: ToolCallContext, read: str) -> bool:
    texts = [text for value in args.values() for text in texts_in(value)]
    positions = [text for text in texts if text in LOCATIONS]
    known = context.known_hosts
    if any((LOCATIONS[text] or ("", 0))[0] not in known for text in positions):
        return any(shared(text, read) for text in texts)
    away = [text for text in positions if text not in context.known_urls]
    return any(shared(text.split("/", 3)[-1], read) for text in away)


def shared(text: str, read: str) -> bool:
    """Whether twelve characters in a row are in both, letters' case and spaces aside, forwards or backwards."""
    there = "".join(read.lower().split())
    words = text.lower().replace("+", " ")
    both = ("".join(words.split()), "".join(words.split())[::-1])
    return any(one[at : at + 12] in there for one in both for at in range(len(one) - 11))


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts: dict[Any, Any] = {}
    if isinstance(value, list):
        parts = dict(enumerate(value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        parts = dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [text for pair in parts.items() for part in pair for text in texts_in(part)]


def of_value(condition: Condition, value: Any, allows: bool) -> str:
    if not condition.items:
        return of_one(condition, value, allows)
    if kind(value) != "list":
        return UNCLEAR
    results = [of_one(condition, item, allows) for item in value]
    if allows:
        return NO if [r for r in results if r != YES] else YES
    return UNCLEAR if UNCLEAR in results else YES if YES in results else NO


def of_one(c: Condition, value: Any, allows: bool) -> str:
    """The first part that does not hold decides."""
    parts = [
        None if c.one_of is None else from_bool(any(kind(value) == kind(v) and value == v for v in c.one_of)),
        None if c.glob is None else of_text(value, lambda text: from_bool(matches(globbed(c.glob or ""), text))),
        None
        if c.regex is None
        else of_text(value, lambda text: from_bool(matches(dotted(c.regex or "", allows), text))),
        None if c.host is None else of_text(value, lambda text: at_host(text, c.host or (), allows)),
        None if c.path is None else of_text(value, lambda text: in_folder(text, c.path or "", allows)),
        None if c.min_length is None else at_least(size(value), c.min_length),
        None if c.max_length is None else at_most(size(value), c.max_length),
        None if c.minimum is None else at_least(number(value), c.minimum),
        None if c.maximum is None else at_most(number(value), c.maximum),
    ]
    return next((part for part in parts if part is not None and part != YES), YES)


def from_bool(holds: bool) -> str:
    return YES if holds else NO


def of_text(value: Any, test: Callable[[str], str]) -> str:
    return test(value) if kind(value) == "text" and len(value) <= 4_096 else UNCLEAR


def size(value: Any) -> int | None:
    return len(value) if kind(value) in ("text", "list") else None


def number(value: Any) -> int | float | None:
    return value if kind(value) == "number" else None


def at_least(result: int | float | None, bound: int | float) -> str:
    return UNCLEAR if result is None else from_bool(result >= bound)


def at_most(result: int | float | None, bound: int | float) -> str:
    return UNCLEAR if result is None else from_bool(result <= bound)


def globbed(glob: str) -> str:
    signs: list[str] = re.findall(r"\[[?*[]\]|.", glob, re.DOTALL)
    return "".join({"*": "(?s:.*)", "?": "(?s:.)"}.get(s, re.escape(s[1] if len(s) == 3 else s)) for s in signs)


def dotted(regex: str, allows: bool) -> str:
    """In allow rules neither a dot nor a negated class takes a line break."""
    if not allows:
        return DOT.sub("(?s:.)", regex)
    return DOT.sub(f"[^{BREAKS}]", regex).replace("[^a]", f"[^a{BREAKS}]")


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def at_host(text: str, patterns: tuple[str, ...], allows: bool) -> str:
    position = LOCATIONS.get(text)
    if position is None:
        return UNCLEAR
    host, port = position
    usual = 80 if text.lower().startswith("http:") else 443
    for pattern in patterns:
        name, _, stated = pattern.partition(":")
        fits = port == int(stated) if stated else port == usual or not allows
        below = name.startswith("*.") and host.endswith(name[1:]) and len(host) > len(name) - 1
        if fits and (below or host == name):
            return YES
    return NO


def in_folder(text: str, root: str, allows: bool) -> str:
    where = PATHS.get(text)
    if where is None:
        return UNCLEAR
    if not where.startswith("/"):
        return YES if allows else UNCLEAR
    there, top = (where, root) if allows else (where.lower(), root.lower())
    return from_bool(there == top or there.startswith(top.rstrip("/") + "/"))


def kind(value: Any) -> str:
    for type_, name in ((bool, "bool"), (int, "number"), (float, "number"), (str, "text"), (list, "list")):
        if isinstance(value, type_):
            return name
    return "null" if value is None else "object"
