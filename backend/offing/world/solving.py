"""What a question still needs to be known, and what it comes to once that is known.

Pure reasoning over what tools said, true or not: it never looks into a world. The only home of the rule that a later
answer corrects an earlier one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.errors import InvalidInput
from offing.world.language import NAME, Count, Difference, Expression, Name, Node, Of, Pick, Sum, Value, read
from offing.world.semantics import ANSWERED_BY, BY_NAME

NOT_ANSWERABLE = "not answerable"
"""The answer to a question about something that is not recorded."""


@dataclass(frozen=True, slots=True)
class Need:
    """A look-up that is still to be made."""

    relation: str
    entity: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a tool said. No values and `closed`: there are none; no values and not `closed`: it cannot say."""

    relation: str
    entity: str
    values: tuple[str, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What a part of a question comes to."""

    values: tuple[str, ...] | None = None
    """None: something on the way to it is not recorded, or (with `needs`) it is not known yet."""
    needs: tuple[Need, ...] = ()


Facts = Mapping[Need, tuple[str, ...]]


def needs(question: str, known: Sequence[Known]) -> tuple[Need, ...]:
    """The look-ups still missing that can be made now, in order; what depends on their results is not among them.

    Empty: the question can be answered. Raises InvalidInput for a question that no world asks.
    """
    return _solved(_parsed(question), _facts(known)).needs


def answer(question: str, known: Sequence[Known]) -> str | None:
    """The short answer; "not answerable" where something on the way is known not to be recorded. None: more is needed.

    Raises InvalidInput for a question that no world asks.
    """
    found = _solved(_parsed(question), _facts(known))
    if found.needs:
        return None
    return ", ".join(found.values) if found.values else NOT_ANSWERABLE


def known_of(tool_args: Mapping[str, Any], content: Mapping[str, Any]) -> Known | None:
    """A finished tool call as knowledge. None: it says nothing, because it failed or is no call of a world's tool."""
    relation = content.get("relation", tool_args.get("relation"))
    entity = content.get("entity", tool_args.get("entity"))
    values = content.get("values")
    if not isinstance(relation, str) or not isinstance(entity, str) or not isinstance(values, list | tuple):
        return None
    return Known(relation, entity, tuple(str(v) for v in values), bool(content.get("closed", False)))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def tools_for(relation: str) -> tuple[str, ...]:
    """The tools that answer a relation: a secret, for oracles and never for agents. Empty: no such relation."""
    return ANSWERED_BY.get(relation, ())


def entities_in(question: str) -> tuple[str, ...]:
    """The entities that a text names, in order of first appearance."""
    expression = read(question)
    named = _names(expression) if expression is not None else NAME.findall(question)
    return tuple(dict.fromkeys(named))


def _parsed(question: str) -> Expression:
    expression = read(question)
    if expression is None:
        raise InvalidInput("question", "No world asks this", "Take a question of `offing world tasks`")
    return expression


def _facts(known: Iterable[Known]) -> Facts:
    return {Need(k.relation, k.entity): k.values for k in known if k.values or k.closed}


def _names(part: Expression | Node) -> list[str]:
    match part:
        case Name(entity):
            return [entity]
        case Of(_, of):
            return _names(of)
        case Pick(_, _, options):
            return [n for o in options for n in _names(o)]
        case Value(node) | Count(node):
            return _names(node)
        case Difference(_, first, second) | Sum(_, first, second):
            return _names(first) + _names(second)


def _solved(expression: Expression, facts: Facts) -> _Found:
    match expression:
        case Value(node):
            return _denoted(node, facts)
        case Count(node):
            found = _denoted(node, facts)
            return found if found.values is None else _Found((str(len(found.values)),))
        case Difference(relation, first, second):
            return _combined(relation, (first, second), facts, lambda a, b: abs(a - b))
        case Sum(relation, first, second):
            return _combined(relation, (first, second), facts, lambda a, b: a + b)


def _denoted(node: Node, facts: Facts) -> _Found:
    match node:
        case Name(entity):
            return _Found((entity,))
        case Of(relation, of):
            return _looked_up(relation, _denoted(of, facts), facts)
        case Pick(relation, greatest, options):
            return _picked(relation, greatest, _all([_denoted(o, facts) for o in options]), facts)


def _all(found: Sequence[_Found]) -> _Found:
    """Several parts as one: what all of them need, or the values of all. One that is not recorded leaves none."""
    missing = tuple(dict.fromkeys(n for f in found for n in f.needs))
    if missing:
        return _Found(needs=missing)
    if any(not f.values for f in found):
        return _Found()
    return _Found(tuple(dict.fromkeys(v for f in found for v in f.values or ())))


def _looked_up(relation: str, subjects: _Found, facts: Facts) -> _Found:
    if not subjects.values:
        return _Found(needs=subjects.needs)
    wanted = [Need(relation, entity) for entity in subjects.values]
    missing = tuple(n for n in wanted if n not in facts)
    if missing:
        return _Found(needs=missing)
    values = tuple(dict.fromkeys(v for n in wanted for v in facts[n]))
    return _Found(values if values or BY_NAME[relation].many else None)


def _picked(relation: str, greatest: bool, options: _Found, facts: Facts) -> _Found:
    if not options.values:
        return options
    numbers = _all([_number(relation, _Found((entity,)), facts) for entity in options.values])
    ranked = [_number(relation, _Found((entity,)), facts).values for entity in options.values]
    if numbers.values is None:
        return numbers
    least = sorted(zip([int(v[0]) for v in ranked if v], options.values, strict=True), key=lambda pair: pair[0])
    return _Found((least[-1 if greatest else 0][1],))


def _number(relation: str, subject: _Found, facts: Facts) -> _Found:
    """A relation as a number: its value, or with many values how many there are."""
    found = _looked_up(relation, subject, facts)
    if found.values is None:
        return found
    if BY_NAME[relation].many:
        return _Found((str(len(found.values)),))
    return found if found.values[0].isdecimal() else _Found()


def _combined(relation: str, parts: Sequence[Node], facts: Facts, how: Callable[[int, int], int]) -> _Found:
    numbers = [_number(relation, _denoted(part, facts), facts) for part in parts]
    together = _all(numbers)
    if together.values is None:
        return together
    return _Found((str(how(*(int(n.values[0]) for n in numbers if n.values))),))
