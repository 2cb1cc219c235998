"""Faults that show in a graph's code: what a node does that is not the same when it runs again after a loss.

Follows calls from nodes, routers and roles through the graph's own package; tools are where effects belong and are not
followed. Reads code and never runs it.
"""

import ast
from collections.abc import Iterator
from typing import Any

from offing.sdk import Graph, Role
from offing.testing.checking.awaiting import not_awaited
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.reading import Reading, Source, named
from offing.tools import reserved

CLOCK = "a clock"
CHANCE = "chance"
OUTSIDE = "the outside world"
DIFFERS = {
    **{f"time.{name}": CLOCK for name in ("time", "time_ns", "monotonic", "perf_counter", "localtime", "gmtime")},
    **{f"datetime.{kind}": CLOCK for kind in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")},
    **{f"uuid.{name}": CHANCE for name in ("uuid1", "uuid4")},
    "builtins.id": CHANCE,
    "builtins.hash": CHANCE,
    **dict.fromkeys(("builtins.open", "io.open", "_io.open"), OUTSIDE),
    "builtins.input": OUTSIDE,
    "builtins.set": "the order of a set",
}
"""What is not the same twice, by its full name."""

ROOMS = {
    **dict.fromkeys(("random", "secrets"), CHANCE),
    **dict.fromkeys(("socket", "subprocess", "urllib.request", "http.client", "smtplib", "ftplib"), OUTSIDE),
    **dict.fromkeys(("httpx", "requests", "aiohttp", "openai", "litellm", "os", "shutil", "tempfile"), OUTSIDE),
}
"""The same for all of a module."""

HARMLESS = ("os.fspath", "os.path.", "os.PathLike")
SEEDED = "random.Random"
"""A generator that begins with a seed draws the same again."""

ORDERLESS = frozenset({"sorted", "any", "all", "sum", "len", "max", "min", "set", "frozenset"})
"""What makes the same of things in any order."""

REMEDY = {
    CLOCK: "Time is not for nodes: budgets see to it, and a step has its own.",
    CHANCE: "Draw from random.Random(ctx.run.seed) and what is in the state.",
    OUTSIDE: "Put it into a tool of the graph's own, so that it is recorded, limited and not done twice.",
    "the order of a set": "Sort it first.",
}


def faults_of_code(graph: Graph) -> list[Finding]:
    """Without running it."""
    reading = Reading(_beginnings(graph))
    found = [_fault(source, *fault) for source in reading.sources for fault in differing(source)]
    found += [fault for source in reading.sources for fault in _unknown_names(graph, source)]
    found += [fault for source in reading.sources for fault in not_awaited(source)]
    return [*found, *_unlimited(graph, reading)]


def _beginnings(graph: Graph) -> Iterator[Any]:
    """Every function that the platform calls when the graph runs."""
    built = graph.build()
    for spec in built.nodes.values():
        yield from _functions(spec.runnable)
    for branches in built.branches.values():
        for branch in branches.values():
            yield from _functions(branch.path)
    for role in graph.roles:
        yield from (role.render, role.headline, role.extractive, *role.rules.values())
        yield from (f for form in role.forms for f in (form.render, form.parse, form.spans, form.write))
    yield graph.start


def _functions(runnable: Any) -> Iterator[Any]:
    yield getattr(runnable, "func", None)
    yield getattr(runnable, "afunc", None)


def differing(source: Source) -> Iterator[tuple[ast.AST, str, str]]:
    """Where a function does what is not the same twice: the place, what it does, and what that depends on."""
    settled = _settled(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (name := named(node.func, source)):
            why = DIFFERS.get(name) or _room(name)
            if why and why != DIFFERS["builtins.set"]:
                yield node, f"It calls {name}", why
        over = node.iter if isinstance(node, ast.For | ast.comprehension) else None
        if over is not None and _is_set(over, source) and node not in settled:
            yield over, "It goes through a set", DIFFERS["builtins.set"]


def _fault(source: Source, node: ast.AST, what: str, why: str) -> Finding:
    level = WARNING if why == DIFFERS["builtins.set"] else ERROR
    text = f"{what}, which depends on {why}: after a lost worker it runs again and may go another way."
    return Finding(level, "unsafe-to-repeat", source.place(node), text, REMEDY[why])


def _room(name: str) -> str | None:
    if name == SEEDED or name.startswith(HARMLESS):
        return None
    return next((why for room, why in ROOMS.items() if name.startswith(f"{room}.")), None)


def _is_set(node: ast.expr, source: Source) -> bool:
    if isinstance(node, ast.Call):
        return named(node.func, source) in ("builtins.set", "builtins.frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def _settled(source: Source) -> set[ast.AST]:
    """Comprehensions whose order does not show, since what they make is sorted, counted or a set itself."""
    settled: set[ast.AST] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.SetComp | ast.DictComp):
            settled |= set(node.generators)
        elif isinstance(node, ast.Call) and named(node.func, source).removeprefix("builtins.") in ORDERLESS:
            inner = [arg for arg in node.args if isinstance(arg, ast.GeneratorExp | ast.ListComp)]
            settled |= {generator for arg in inner for generator in arg.generators}
    return settled


def _unknown_names(graph: Graph, source: Source) -> Iterator[Finding]:
    """Tools that no run of the graph may call, and roles that nobody could be configured for."""
    own = {tool.spec.name for tool in graph.tools if not isinstance(tool, str)}
    roles = {role.name for role in graph.roles}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        if named(node.func, source).endswith(".ToolCall") and isinstance(first, ast.Constant):
            if first.value not in own | reserved():
                why = f"It calls the tool {first.value!r}, which the graph does not declare."
                yield Finding(ERROR, "undeclared-tool", source.place(node), why, "Name it in `Graph.tools`.")
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "call":
            role = source.value(first)
            if isinstance(role, Role) and role.name not in roles:
                why = f"It asks the role {role.name!r}, which the graph does not declare."
                yield Finding(ERROR, "undeclared-role", source.place(node), why, "Name it in `Graph.roles`.")


def _unlimited(graph: Graph, reading: Reading) -> list[Finding]:
    from offing.testing.checking.shape import loops

    drawn: Any = graph.build().compile().get_graph()
    looped = loops((edge.source, edge.target) for edge in drawn.edges)
    called = {name for source in reading.sources for name in _methods(source)}
    found: list[Finding] = []
    if looped and "stop" not in called:
        why = "Nothing in its loop asks `ctx.stop()`, so that no budget and no person ends it."
        found.append(Finding(ERROR, "no-limit", graph.name, why, "Ask at the beginning of each turn, and then write."))
    if looped and "begin_turn" not in called:
        why = "Its loop never says `ctx.begin_turn(n)`, so that the limit on turns does not count."
        found.append(Finding(ERROR, "no-limit", graph.name, why, "Say it in the loop's first node."))
    return found


def _methods(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
