"""Find the look-ups that a question still needs, and its answer once they are made.

The module reasons over tool results, whether true or not, and never reads the world. A
later result for the same look-up corrects an earlier one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offing.core.errors import InvalidInput
from offing_world.question_grammar import (
    NAME_PATTERN,
    Count,
    Difference,
    EntityName,
    Expression,
    Node,
    RelationOf,
    Sum,
    Superlative,
    Value,
    parse_question,
)
from offing_world.semantics import RELATIONS_BY_NAME, TOOLS_BY_RELATION

NOT_ANSWERABLE = "not answerable"
"""The answer to a question that depends on a value that is not recorded."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up that a question needs."""

    relation: str
    entity: str


@dataclass(frozen=True, slots=True)
class KnownFact:
    """The result of a look-up.

    Without values, `closed` means that there are none, and not `closed` means that the tool
    cannot answer.
    """

    relation: str
    entity: str
    values: tuple[str, ...]
    closed: bool
    witness: str = ""
    """The tool, if its values count only once another tool agrees. Empty means that they count."""


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """The value of a part of a question."""

    values: tuple[str, ...] | None = None
    """Values of the part.

    `None` means that a required value is not recorded or, with `missing`, not known yet.
    """
    missing: tuple[LookUp, ...] = ()


Facts = Mapping[LookUp, tuple[str, ...]]


def find_missing_look_ups(question: str, known: Sequence[KnownFact]) -> tuple[LookUp, ...]:
    """Return the missing look-ups that can be made now, in order.

    Look-ups that depend on the results of others are left out. An empty tuple means that the
    question can be answered. Raises `InvalidInput` if the grammar cannot parse the question.
    """
    return _evaluate(_require_expression(question), _index_facts(known)).missing


def find_answer(question: str, known: Sequence[KnownFact]) -> str | None:
    """Return the short answer, or `None` if look-ups are missing.

    The answer is "not answerable" if a required value is known not to be recorded. Raises
    `InvalidInput` if the grammar cannot parse the question.
    """
    evaluation = _evaluate(_require_expression(question), _index_facts(known))
    if evaluation.missing:
        return None
    return ", ".join(evaluation.values) if evaluation.values else NOT_ANSWERABLE


def fact_from_call(tool_args: Mapping[str, Any], content: Mapping[str, Any]) -> KnownFact | None:
    """Return the fact that a finished tool call reports.

    Returns `None` if the call failed or was not a call of a tool of the world.
    """
    relation = content.get("relation", tool_args.get("relation"))
    entity = content.get("entity", tool_args.get("entity"))
    values = content.get("values")
    if not isinstance(relation, str) or not isinstance(entity, str) or not isinstance(values, list | tuple):
        return None
    texts = tuple(str(v) for v in values)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return KnownFact(relation, entity, texts, bool(content.get("closed", False)), str(content.get("witness", "")))


def list_tools_of_relation(relation: str) -> tuple[str, ...]:
    """Return the tools that answer a relation. Empty means that the relation does not exist.

    This is hidden from agents and only for oracles.
    """
    return TOOLS_BY_RELATION.get(relation, ())


def extract_entities(question: str) -> tuple[str, ...]:
    """Return the entities that a text names, in order of first appearance."""
    expression = parse_question(question)
    named = _list_entities(expression) if expression is not None else NAME_PATTERN.findall(question)
    return tuple(dict.fromkeys(named))


def _require_expression(question: str) -> Expression:
    expression = parse_question(question)
    if expression is None:
        raise InvalidInput("question", "No world asks this", "Take a question of `offing world tasks`")
    return expression


def _index_facts(known: Iterable[KnownFact]) -> Facts:
    facts: dict[LookUp, tuple[str, ...]] = {}
    witnesses: dict[tuple[LookUp, tuple[str, ...]], str] = {}
    for fact in known:
        look_up = LookUp(fact.relation, fact.entity)
        first = witnesses.setdefault((look_up, fact.values), fact.witness) if fact.witness else ""
        if (fact.values or fact.closed) and (not fact.witness or first != fact.witness):
            facts[look_up] = fact.values
    return facts


def _list_entities(part: Expression | Node) -> list[str]:
    match part:
        case EntityName(entity):
            return [entity]
        case RelationOf(_, of):
            return _list_entities(of)
        case Superlative(_, _, options):
            return [n for o in options for n in _list_entities(o)]
        case Value(node) | Count(node):
            return _list_entities(node)
        case Difference(_, first, second) | Sum(_, first, second):
            return _list_entities(first) + _list_entities(second)


def _evaluate(expression: Expression, facts: Facts) -> _Evaluation:
    match expression:
        case Value(node):
            return _evaluate_node(node, facts)
        case Count(node):
            evaluation = _evaluate_node(node, facts)
            return evaluation if evaluation.values is None else _Evaluation((str(len(evaluation.values)),))
        case Difference(relation, first, second):
            return _calculate(relation, (first, second), facts, lambda a, b: abs(a - b))
        case Sum(relation, first, second):
            return _calculate(relation, (first, second), facts, lambda a, b: a + b)


def _evaluate_node(node: Node, facts: Facts) -> _Evaluation:
    match node:
        case EntityName(entity):
            return _Evaluation((entity,))
        case RelationOf(relation, of):
            return _evaluate_relation(relation, _evaluate_node(of, facts), facts)
        case Superlative(relation, greatest, options):
            return _select_extreme(relation, greatest, _combine([_evaluate_node(o, facts) for o in options]), facts)


def _combine(evaluations: Sequence[_Evaluation]) -> _Evaluation:
    """Combine several parts into one.

    The result holds the look-ups that any part needs, or else the values of all parts. It has
    no values if a part is not recorded.
    """
    missing = tuple(dict.fromkeys(n for f in evaluations for n in f.missing))
    if missing:
        return _Evaluation(missing=missing)
    if any(not f.values for f in evaluations):
        return _Evaluation()
    return _Evaluation(tuple(dict.fromkeys(v for f in evaluations for v in f.values or ())))


def _evaluate_relation(relation: str, subjects: _Evaluation, facts: Facts) -> _Evaluation:
    if not subjects.values:
        return _Evaluation(missing=subjects.missing)
    look_ups = [LookUp(relation, entity) for entity in subjects.values]
    missing = tuple(n for n in look_ups if n not in facts)
    if missing:
        return _Evaluation(missing=missing)
    values = tuple(dict.fromkeys(v for n in look_ups for v in facts[n]))
    return _Evaluation(values if values or RELATIONS_BY_NAME[relation].multi_valued else None)


def _select_extreme(relation: str, greatest: bool, options: _Evaluation, facts: Facts) -> _Evaluation:
    if not options.values:
        return options
    numbers = _combine([_evaluate_number(relation, _Evaluation((entity,)), facts) for entity in options.values])
    ranked = [_evaluate_number(relation, _Evaluation((entity,)), facts).values for entity in options.values]
    if numbers.values is None:
        return numbers
    ranking = sorted(zip([int(v[0]) for v in ranked if v], options.values, strict=True), key=lambda pair: pair[0])
    return _Evaluation((ranking[-1 if greatest else 0][1],))


def _evaluate_number(relation: str, subject: _Evaluation, facts: Facts) -> _Evaluation:
    """Evaluate a relation as a number: its value, or for a multi-valued relation its number of values."""
    evaluation = _evaluate_relation(relation, subject, facts)
    if evaluation.values is None:
        return evaluation
    if RELATIONS_BY_NAME[relation].multi_valued:
        return _Evaluation((str(len(evaluation.values)),))
    return evaluation if evaluation.values[0].isdecimal() else _Evaluation()


def _calculate(relation: str, parts: Sequence[Node], facts: Facts, operation: Callable[[int, int], int]) -> _Evaluation:
    numbers = [_evaluate_number(relation, _evaluate_node(part, facts), facts) for part in parts]
    together = _combine(numbers)
    if together.values is None:
        return together
    return _Evaluation((str(operation(*(int(n.values[0]) for n in numbers if n.values))),))
