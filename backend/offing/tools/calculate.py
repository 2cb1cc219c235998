"""The tool that does arithmetic: a small evaluator over a parsed expression. Nothing is ever executed."""

import ast
import math
import operator
from collections.abc import Callable, Sequence

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.tools.tool import ToolArgs, ToolFailed, ToolScope

Number = int | float

LARGEST_BITS = 4_096
"""Size of an integer, of an intermediate result too. Larger ones are refused before they are computed."""
DEEPEST = 64
"""Nesting of an expression."""

CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}


class CalculateArgs(ToolArgs, frozen=True):
    expression: str = Field(
        min_length=1,
        max_length=500,
        description="Numbers, + - * / // % **, parentheses, pi, e, tau, and the functions abs, ceil, exp, floor, log, "
        "log2, log10, max, mean, min, round, sqrt, sum. A list such as [1, 2, 3] may stand for several numbers.",
        examples=["round(100 * (42 - 37) / 37, 1)"],
    )


class Calculate:
    spec = ToolSpec(
        name="calculate",
        description="Evaluate an arithmetic expression exactly.",
        args=CalculateArgs,
        verb="calculate",
        effect=Effect.PURE,
        timeout_seconds=5.0,
    )

    async def __call__(self, args: CalculateArgs, scope: ToolScope) -> ToolOutput:
        result = evaluate(args.expression)
        return ToolOutput(
            content={"expression": args.expression, "result": _exact(result), "text": _text(result)},
            title=shortened(args.expression),
            detail=shortened(f"= {_text(result)}"),
        )


def evaluate(expression: str) -> Number:
    """The value of an arithmetic expression. Raises `ToolFailed` with what is wrong in it."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolFailed("This is not an arithmetic expression; write it as in (3 + 4) * 2.") from None
    try:
        return _one(_value(tree.body, 0))
    except ZeroDivisionError:
        raise ToolFailed("The expression divides by zero.") from None
    except OverflowError:
        raise ToolFailed("A number in it becomes too large.") from None
    except ValueError as error:
        raise ToolFailed(f"A function in it has no value there: {error}.") from None


def _value(node: ast.expr, depth: int) -> Number | list[Number]:
    if depth > DEEPEST:
        raise ToolFailed("The expression is nested too deeply; split it.")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _checked(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in SIGNS:
            return SIGNS[type(op)](_one(_value(operand, depth + 1)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            values = _one(_value(left, depth + 1)), _one(_value(right, depth + 1))
            return _checked(OPERATORS[type(op)](*values))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_one(_value(item, depth + 1)) for item in items]
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS:
            return _checked(_called(name, [_value(argument, depth + 1) for argument in given]))
        case _:
            raise ToolFailed(f"Not part of an arithmetic expression: {shortened(ast.unparse(node), 60)}.")


def _one(value: Number | list[Number]) -> Number:
    if isinstance(value, list):
        raise ToolFailed("A list stands where a single number is needed.")
    return value


def _called(name: str, arguments: Sequence[Number | list[Number]]) -> Number:
    fewest, most, function = FUNCTIONS[name]
    flat = [v for a in arguments for v in (a if isinstance(a, list) else [a])]
    if not fewest <= len(flat) <= most:
        raise ToolFailed(f"{name} cannot take {len(flat)} numbers.")
    return function(*flat)


def _checked(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError
    elif value.bit_length() > LARGEST_BITS:
        raise OverflowError
    return value


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and base.bit_length() * exponent > LARGEST_BITS + base.bit_length():
            raise OverflowError
        return base**exponent
    return _real(float(base) ** float(exponent))


def _real(value: complex) -> float:
    if isinstance(value, complex):
        raise ToolFailed("The result is not a real number.")
    return value


def _absolute(value: Number) -> Number:
    return abs(value)


def _ceiling(value: Number) -> int:
    return math.ceil(value)


def _floor(value: Number) -> int:
    return math.floor(value)


def _rounded(value: Number, digits: Number = 0) -> Number:
    places = int(digits)
    if places != digits or abs(places) > 300:
        raise ToolFailed("round takes a whole number of places.")
    return round(value, places) if places else round(value)


def _mean(*values: Number) -> Number:
    return sum(values) / len(values)


SIGNS: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}

OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

MANY = 500
FUNCTIONS: dict[str, tuple[int, int, Callable[..., Number]]] = {
    "abs": (1, 1, _absolute),
    "ceil": (1, 1, _ceiling),
    "exp": (1, 1, math.exp),
    "floor": (1, 1, _floor),
    "log": (1, 2, math.log),
    "log2": (1, 1, math.log2),
    "log10": (1, 1, math.log10),
    "max": (1, MANY, lambda *values: max(values)),
    "mean": (1, MANY, _mean),
    "min": (1, MANY, lambda *values: min(values)),
    "round": (1, 2, _rounded),
    "sqrt": (1, 1, math.sqrt),
    "sum": (0, MANY, lambda *values: sum(values)),
}
"""Fewest and most numbers that each takes."""


def _exact(value: Number) -> Number | str:
    """As JSON holds it without loss: integers past 2**53 as text."""
    return str(value) if isinstance(value, int) and abs(value) > 2**53 else value


def _text(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"
