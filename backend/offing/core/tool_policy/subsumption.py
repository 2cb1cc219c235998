"""Subsumption: proves that every call that one rule admits is also admitted by another rule.

The proof is sound but not complete: `False` means that nothing was proved. Sets of exact values,
globs, regular expressions, hosts, folders, lengths and bounds are compared. What follows only from
several rules together is not found.
"""

from collections.abc import Callable, Sequence

from offing.core.tool_policy.conditions import UndecidableError, explain_mismatch
from offing.core.tool_policy.hosts_and_paths import is_host_within
from offing.core.tool_policy.pattern import Pattern, compile_glob, compile_pattern, is_subset
from offing.core.tool_policy.rules import Condition, ToolRule


def covers(wide: ToolRule, narrow: ToolRule) -> bool:
    """Return whether the allow rule `wide` always admits every call that the allow rule `narrow` admits."""
    named = {condition.arg for condition in narrow.when}
    if not wide.allow_other_args and (
        narrow.allow_other_args or not named <= {condition.arg for condition in wide.when}
    ):
        return False
    return (
        wide.tool == narrow.tool
        and wide.when_tainted in (None, narrow.when_tainted)
        and wide.allow_copied_text >= narrow.allow_copied_text
        and _is_within_limit(narrow.max_calls, wide.max_calls)
        and _is_within_limit(narrow.max_bytes, wide.max_bytes)
        and all(_is_condition_implied(condition, narrow) for condition in wide.when)
    )


def catches(wide: ToolRule, narrow: ToolRule) -> bool:
    """Return whether `wide` matches or cannot decide every call that `narrow` matches or cannot decide.

    Neither of them is an allow rule. This is proved only if the conditions of `wide` are a prefix of
    those of `narrow`, because every further condition could end the evaluation with a mismatch.
    """
    return (
        wide.tool == narrow.tool
        and wide.when_tainted in (None, narrow.when_tainted)
        and wide.when == narrow.when[: len(wide.when)]
    )


def shadows(catching: ToolRule, rule: ToolRule) -> bool:
    """Return whether `catching` catches every call that `rule` is about.

    It does if all its conditions are also conditions of `rule`.
    """
    return (
        catching.tool == rule.tool
        and catching.when_tainted in (None, rule.when_tainted)
        and all(any(_is_same_or_weaker(c, own) for own in rule.when) for c in catching.when)
    )


def _is_same_or_weaker(catching: Condition, own: Condition) -> bool:
    plain = not catching.items and (catching.optional or not own.optional)
    return plain and catching.model_copy(update={"optional": own.optional}) == own


def _is_within_limit(narrow: int | None, wide: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _is_condition_implied(implied_condition: Condition, narrow: ToolRule) -> bool:
    """Return whether a call that `narrow` admits meets this condition of an allow rule."""
    own = [condition for condition in narrow.when if condition.arg == implied_condition.arg]
    always_there = any(not condition.optional for condition in own)
    if not (implied_condition.optional or always_there):
        return False
    if not own and not narrow.allow_other_args:
        return True  # the argument is never present
    return _is_implied(own, implied_condition)


def _is_implied(conditions: Sequence[Condition], implied_condition: Condition) -> bool:
    """Return whether a value that meets all `conditions` also meets `wanted_condition`.

    All of them are conditions of allow rules.
    """
    finite = next((c for c in conditions if c.one_of is not None and not c.items), None)
    if finite is not None and finite.one_of is not None:
        return all(
            _is_met(value, implied_condition) for value in finite.one_of if all(_is_met(value, c) for c in conditions)
        )
    alike = [condition for condition in conditions if condition.items == implied_condition.items]
    if implied_condition.items and not alike:
        return False
    if implied_condition.one_of is not None:
        return any(c.one_of is not None and _all_items_meet(c, implied_condition) for c in alike)
    return all(any(proof(c) for c in alike) for proof in _build_proofs(implied_condition))


def _is_met(value: object, condition: Condition) -> bool:
    try:
        return not explain_mismatch(condition, value, grants=True)
    except UndecidableError:
        return False


def _all_items_meet(own: Condition, condition: Condition) -> bool:
    """Return whether each value of the list also meets the other condition. For conditions on items."""
    single = condition.model_copy(update={"items": False})
    return all(_is_met(value, single) for value in own.one_of or ())


Proof = Callable[[Condition], bool]


def _build_proofs(condition: Condition) -> list[Proof]:
    """Return the proofs that are needed. One condition alone must satisfy each of them."""
    proofs: list[Proof] = []
    language = _compile_text_patterns(condition)
    for one in language:
        proofs.append(lambda c, one=one: _is_text_subset(c, one))
    if (hosts := condition.host) is not None:
        proofs.append(lambda c: c.host is not None and all(any(is_host_within(h, w) for w in hosts) for h in c.host))
    if (root := condition.path) is not None:
        proofs.append(lambda c: c.path == root)  # a relative path counts from this folder
    return [*proofs, *_build_size_proofs(condition)]


def _build_size_proofs(condition: Condition) -> list[Proof]:
    proofs: list[Proof] = []
    if (min_length := condition.min_length) is not None:
        proofs.append(lambda c: c.min_length is not None and c.min_length >= min_length)
    if (max_length := condition.max_length) is not None:
        proofs.append(lambda c: c.max_length is not None and c.max_length <= max_length)
    if (low := condition.minimum) is not None:
        proofs.append(lambda c: c.minimum is not None and c.minimum >= low)
    if (high := condition.maximum) is not None:
        proofs.append(lambda c: c.maximum is not None and c.maximum <= high)
    return proofs


def _is_text_subset(own: Condition, pattern: Pattern) -> bool:
    return any(is_subset(one, pattern) is True for one in _compile_text_patterns(own))


def _compile_text_patterns(condition: Condition) -> list[Pattern]:
    """Return the patterns that the text of a value is known to match."""
    globs = [compile_glob(condition.glob)] if condition.glob is not None else []
    return globs + ([compile_pattern(condition.regex, False)] if condition.regex is not None else [])
