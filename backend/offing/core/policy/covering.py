"""When every call that one rule lets through is let through by another: the only home of that proof.

It is sound and not complete: False means that nothing was proved. Exact sets of values, globs and regular expressions,
hosts, folders, lengths and bounds are compared; what follows only from several rules together is not found.
"""

from collections.abc import Callable, Sequence

from offing.core.policy.pattern import Pattern, compiled, of_glob, within
from offing.core.policy.places import host_within
from offing.core.policy.rules import Condition, Rule
from offing.core.policy.trying import Unjudged, complaint


def covers(wide: Rule, narrow: Rule) -> bool:
    """Whether every call that `narrow`, an allow rule, admits at any moment is admitted by `wide`, another one."""
    named = {condition.arg for condition in narrow.when}
    if not wide.others and (narrow.others or not named <= {condition.arg for condition in wide.when}):
        return False
    return (
        wide.tool == narrow.tool
        and wide.tainted in (None, narrow.tainted)
        and wide.copies >= narrow.copies
        and _at_most(narrow.most, wide.most)
        and _at_most(narrow.most_bytes, wide.most_bytes)
        and all(_follows(condition, narrow) for condition in wide.when)
    )


def catches(wide: Rule, narrow: Rule) -> bool:
    """Whether `wide` meets, or cannot judge, every call that `narrow` meets or cannot judge. Neither is an allow rule.

    Only a beginning of the other's conditions is known to do so: each further one could end the trial with a no.
    """
    return (
        wide.tool == narrow.tool
        and wide.tainted in (None, narrow.tainted)
        and wide.when == narrow.when[: len(wide.when)]
    )


def shadows(catching: Rule, rule: Rule) -> bool:
    """Whether every call that `rule` is about is caught by `catching` before, because it has the same conditions."""
    return (
        catching.tool == rule.tool
        and catching.tainted in (None, rule.tainted)
        and all(any(_same_or_less(c, own) for own in rule.when) for c in catching.when)
    )


def _same_or_less(catching: Condition, own: Condition) -> bool:
    plain = not catching.items and (catching.optional or not own.optional)
    return plain and catching.model_copy(update={"optional": own.optional}) == own


def _at_most(narrow: int | None, wide: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _follows(wanted: Condition, narrow: Rule) -> bool:
    """Whether a call that `narrow` admits meets this condition of an allow rule."""
    own = [condition for condition in narrow.when if condition.arg == wanted.arg]
    always_there = any(not condition.optional for condition in own)
    if not (wanted.optional or always_there):
        return False
    if not own and not narrow.others:
        return True  # it is never there
    return _implied(own, wanted)


def _implied(own: Sequence[Condition], wanted: Condition) -> bool:
    """Whether a value that meets all of `own` meets `wanted`, both as conditions of allow rules."""
    finite = next((c for c in own if c.one_of is not None and not c.items), None)
    if finite is not None and finite.one_of is not None:
        return all(_meets(value, wanted) for value in finite.one_of if all(_meets(value, c) for c in own))
    alike = [condition for condition in own if condition.items == wanted.items]
    if wanted.items and not alike:
        return False
    if wanted.one_of is not None:
        return any(c.one_of is not None and _listed(c, wanted) for c in alike)
    return all(any(proof(c) for c in alike) for proof in _needed(wanted))


def _meets(value: object, condition: Condition) -> bool:
    try:
        return not complaint(condition, value, grants=True)
    except Unjudged:
        return False


def _listed(own: Condition, wanted: Condition) -> bool:
    """Of items: each value of one list is one of the other's and meets the rest."""
    single = wanted.model_copy(update={"items": False})
    return all(_meets(value, single) for value in own.one_of or ())


Proof = Callable[[Condition], bool]


def _needed(wanted: Condition) -> list[Proof]:
    """What has to be shown, each by one condition alone."""
    proofs: list[Proof] = []
    language = _language(wanted)
    for one in language:
        proofs.append(lambda c, one=one: _speaks(c, one))
    if (hosts := wanted.host) is not None:
        proofs.append(lambda c: c.host is not None and all(any(host_within(h, w) for w in hosts) for h in c.host))
    if (root := wanted.path) is not None:
        proofs.append(lambda c: c.path == root)  # what is relative counts from it
    return [*proofs, *_sizes(wanted)]


def _sizes(wanted: Condition) -> list[Proof]:
    proofs: list[Proof] = []
    if (least := wanted.min_length) is not None:
        proofs.append(lambda c: c.min_length is not None and c.min_length >= least)
    if (most := wanted.max_length) is not None:
        proofs.append(lambda c: c.max_length is not None and c.max_length <= most)
    if (low := wanted.minimum) is not None:
        proofs.append(lambda c: c.minimum is not None and c.minimum >= low)
    if (high := wanted.maximum) is not None:
        proofs.append(lambda c: c.maximum is not None and c.maximum <= high)
    return proofs


def _speaks(own: Condition, wanted: Pattern) -> bool:
    return any(within(one, wanted) is True for one in _language(own))


def _language(condition: Condition) -> list[Pattern]:
    """What the text of a value is known to be."""
    globs = [of_glob(condition.glob)] if condition.glob is not None else []
    return globs + ([compiled(condition.regex, False)] if condition.regex is not None else [])
