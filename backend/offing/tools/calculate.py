"""The tool for arithmetic: an evaluator of parsed expressions. Nothing is ever executed as code."""

import ast
import math
import operator
from collections.abc import Callable, Sequence

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.tools.platform_tool import MAX_CALLS, PlatformTool, limit_length
from offing.tools.tool import ToolArgs, ToolFailedError, ToolScope

Number = int | float

MAX_BITS = 4_096
"""Maximum bits of an integer, including intermediate results. Larger ones are rejected before they are computed."""
MAX_DEPTH = 64
"""Maximum nesting depth of an expression."""

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
        label="calculate",
        side_effect=SideEffect.PURE,
        timeout_seconds=5.0,
    )

    async def __call__(self, args: CalculateArgs, scope: ToolScope) -> ToolOutput:
        result = evaluate_expression(args.expression)
        return ToolOutput(
            content={"expression": args.expression, "result": _json_number(result), "text": _render_number(result)},
            title=shorten_line(args.expression),
            detail=shorten_line(f"= {_render_number(result)}"),
        )


TOOL = PlatformTool(
    Calculate(),
    ToolRule(tool="calculate", when=(limit_length("expression", 500),), max_calls=MAX_CALLS),
    position=30,
)


def evaluate_expression(expression: str) -> Number:
    """Return the value of an arithmetic expression. Raises `ToolFailedError` with the problem."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolFailedError("This is not an arithmetic expression; write it as in (3 + 4) * 2.") from None
    try:
        return _require_number(_evaluate_node(tree.body, 0))
    except ZeroDivisionError:
        raise ToolFailedError("The expression divides by zero.") from None
    except OverflowError:
        raise ToolFailedError("A number in it becomes too large.") from None
    except ValueError as error:
        raise ToolFailedError(f"A function in it has no value there: {error}.") from None


def _evaluate_node(node: ast.expr, depth: int) -> Number | list[Number]:
    if depth > MAX_DEPTH:
        raise ToolFailedError("The expression is nested too deeply; split it.")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _check_number(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY_OPERATORS:
            return UNARY_OPERATORS[type(op)](_require_number(_evaluate_node(operand, depth + 1)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY_OPERATORS:
            values = _require_number(_evaluate_node(left, depth + 1)), _require_number(_evaluate_node(right, depth + 1))
            return _check_number(BINARY_OPERATORS[type(op)](*values))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_require_number(_evaluate_node(item, depth + 1)) for item in items]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _check_number(_call_function(name, [_evaluate_node(argument, depth + 1) for argument in arguments]))
        case _:
            raise ToolFailedError(f"Not part of an arithmetic expression: {shorten_line(ast.unparse(node), 60)}.")


def _require_number(value: Number | list[Number]) -> Number:
    if isinstance(value, list):
        raise ToolFailedError("A list stands where a single number is needed.")
    return value


def _call_function(name: str, args: Sequence[Number | list[Number]]) -> Number:
    min_count, max_count, function = FUNCTIONS[name]
    flat = [v for a in args for v in (a if isinstance(a, list) else [a])]
    if not min_count <= len(flat) <= max_count:
        raise ToolFailedError(f"{name} cannot take {len(flat)} numbers.")
    return function(*flat)


def _check_number(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError
    elif value.bit_length() > MAX_BITS:
        raise OverflowError
    return value


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and base.bit_length() * exponent > MAX_BITS + base.bit_length():
            raise OverflowError
        return base**exponent
    return _to_float(float(base) ** float(exponent))


def _to_float(value: complex) -> float:
    if isinstance(value, complex):
        raise ToolFailedError("The result is not a real number.")
    return value


def _absolute(value: Number) -> Number:
    return abs(value)


def _ceiling(value: Number) -> int:
    return math.ceil(value)


def _floor(value: Number) -> int:
    return math.floor(value)


def _round(value: Number, digits: Number = 0) -> Number:
    digit_count = int(digits)
    if digit_count != digits or abs(digit_count) > 300:
        raise ToolFailedError("round takes a whole number of places.")
    return round(value, digit_count) if digit_count else round(value)


def _mean(*values: Number) -> Number:
    return sum(values) / len(values)


UNARY_OPERATORS: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}

BINARY_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

MAX_ARGUMENTS = 500
FUNCTIONS: dict[str, tuple[int, int, Callable[..., Number]]] = {
    "abs": (1, 1, _absolute),
    "ceil": (1, 1, _ceiling),
    "exp": (1, 1, math.exp),
    "floor": (1, 1, _floor),
    "log": (1, 2, math.log),
    "log2": (1, 1, math.log2),
    "log10": (1, 1, math.log10),
    "max": (1, MAX_ARGUMENTS, lambda *values: max(values)),
    "mean": (1, MAX_ARGUMENTS, _mean),
    "min": (1, MAX_ARGUMENTS, lambda *values: min(values)),
    "round": (1, 2, _round),
    "sqrt": (1, 1, math.sqrt),
    "sum": (0, MAX_ARGUMENTS, lambda *values: sum(values)),
}
"""Minimum and maximum number of arguments of each function."""


def _json_number(value: Number) -> Number | str:
    """Return a value that JSON holds without loss: integers beyond 2**53 become text."""
    return str(value) if isinstance(value, int) and abs(value) > 2**53 else value


def _render_number(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"
