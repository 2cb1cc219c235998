"""Check for nondeterminism: actions of a node that differ when it runs again after a crash.

Calls are followed from nodes, routers and roles through the graph's own package. Tools are not
followed, because side effects belong there. The code is read and never run.
"""

import ast
from collections.abc import Iterator
from typing import Any

from offing.sdk import Graph, Role
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.source_reader import SourceFunction, SourceReader, resolve_name
from offing.testing.graph_checks.unawaited_calls import find_unawaited_calls
from offing.tools import reserved_tool_names

CLOCK = "a clock"
RANDOMNESS = "randomness"
OUTSIDE = "external systems"
NONDETERMINISTIC_CALLS = {
    **{f"time.{name}": CLOCK for name in ("time", "time_ns", "monotonic", "perf_counter", "localtime", "gmtime")},
    **{f"datetime.{kind}": CLOCK for kind in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")},
    **{f"uuid.{name}": RANDOMNESS for name in ("uuid1", "uuid4")},
    "builtins.id": RANDOMNESS,
    "builtins.hash": RANDOMNESS,
    **dict.fromkeys(("builtins.open", "io.open", "_io.open"), OUTSIDE),
    "builtins.input": OUTSIDE,
    "builtins.set": "the order of a set",
}
"""Nondeterministic functions by their full names."""

NONDETERMINISTIC_MODULES = {
    **dict.fromkeys(("random", "secrets"), RANDOMNESS),
    **dict.fromkeys(("socket", "subprocess", "urllib.request", "http.client", "smtplib", "ftplib"), OUTSIDE),
    **dict.fromkeys(("httpx", "requests", "aiohttp", "openai", "litellm", "os", "shutil", "tempfile"), OUTSIDE),
}
"""Modules whose functions are all nondeterministic."""

ALLOWED_PREFIXES = ("os.fspath", "os.path.", "os.PathLike")
SEEDED_RANDOM = "random.Random"
"""A random generator with a seed gives the same numbers again."""

ORDER_INSENSITIVE = frozenset({"sorted", "any", "all", "sum", "len", "max", "min", "set", "frozenset"})
"""Functions whose result does not depend on the order of their input."""

REMEDIES = {
    CLOCK: "Do not use the clock in nodes. Budgets limit the time of a run, and each step has a timestamp.",
    RANDOMNESS: "Draw from random.Random(ctx.run.seed) and values in the state.",
    OUTSIDE: "Move it into a custom tool, so that it is recorded, limited and not repeated.",
    "the order of a set": "Sort the set first.",
}


def find_determinism_issues(graph: Graph) -> list[GraphIssue]:
    """Return the determinism issues of a graph without running it."""
    reading = SourceReader(_iter_entry_points(graph))
    issues = [_build_issue(source, *fault) for source in reading.sources for fault in iter_nondeterminism(source)]
    issues += [fault for source in reading.sources for fault in _find_unknown_names(graph, source)]
    issues += [fault for source in reading.sources for fault in find_unawaited_calls(source)]
    return [*issues, *_find_unlimited_loops(graph, reading)]


def _iter_entry_points(graph: Graph) -> Iterator[Any]:
    """Yield every function that the platform calls when the graph runs."""
    built = graph.build()
    for spec in built.nodes.values():
        yield from _iter_functions(spec.runnable)
    for branches in built.branches.values():
        for branch in branches.values():
            yield from _iter_functions(branch.path)
    for role in graph.roles:
        yield from (role.render, role.headline, role.extractive, *role.rules.values())
        yield from (f for one in role.prompt_formats for f in (one.render, one.parse, one.spans, one.write))
    yield graph.initial_state


def _iter_functions(runnable: Any) -> Iterator[Any]:
    yield getattr(runnable, "func", None)
    yield getattr(runnable, "afunc", None)


def iter_nondeterminism(source: SourceFunction) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield each nondeterministic action of a function.

    Each item is the syntax node, the action, and what it depends on.
    """
    settled = _find_order_insensitive(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (name := resolve_name(node.func, source)):
            why = NONDETERMINISTIC_CALLS.get(name) or _find_module_cause(name)
            if why and why != NONDETERMINISTIC_CALLS["builtins.set"]:
                yield node, f"It calls {name}", why
        over = node.iter if isinstance(node, ast.For | ast.comprehension) else None
        if over is not None and _is_unordered_set(over, source) and node not in settled:
            yield over, "It iterates over a set", NONDETERMINISTIC_CALLS["builtins.set"]


def _build_issue(source: SourceFunction, node: ast.AST, action: str, cause: str) -> GraphIssue:
    level = WARNING if cause == NONDETERMINISTIC_CALLS["builtins.set"] else ERROR
    text = f"{action}, which depends on {cause}. When the node runs again after a crash, it may make different calls."
    return GraphIssue(level, "unsafe-to-repeat", source.locate(node), text, REMEDIES[cause])


def _find_module_cause(name: str) -> str | None:
    if name == SEEDED_RANDOM or name.startswith(ALLOWED_PREFIXES):
        return None
    return next((why for module, why in NONDETERMINISTIC_MODULES.items() if name.startswith(f"{module}.")), None)


def _is_unordered_set(node: ast.expr, source: SourceFunction) -> bool:
    if isinstance(node, ast.Call):
        return resolve_name(node.func, source) in ("builtins.set", "builtins.frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def _find_order_insensitive(source: SourceFunction) -> set[ast.AST]:
    """Return comprehensions whose order has no effect, since their result is sorted, counted or a set."""
    settled: set[ast.AST] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.SetComp | ast.DictComp):
            settled |= set(node.generators)
        elif (
            isinstance(node, ast.Call)
            and resolve_name(node.func, source).removeprefix("builtins.") in ORDER_INSENSITIVE
        ):
            inner = [arg for arg in node.args if isinstance(arg, ast.GeneratorExp | ast.ListComp)]
            settled |= {generator for arg in inner for generator in arg.generators}
    return settled


def _find_unknown_names(graph: Graph, source: SourceFunction) -> Iterator[GraphIssue]:
    """Yield issues for unknown tools and roles.

    No run of the graph may call such a tool, and no engine can be configured for such a role.
    """
    own = {tool.spec.name for tool in graph.tools if not isinstance(tool, str)}
    roles = {role.name for role in graph.roles}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        if resolve_name(node.func, source).endswith(".ToolCall") and isinstance(first, ast.Constant):
            if first.value not in own | reserved_tool_names():
                why = f"It calls the tool {first.value!r}, which the graph does not declare."
                yield GraphIssue(ERROR, "undeclared-tool", source.locate(node), why, "Add it to `Graph.tools`.")
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "call_role":
            role = source.resolve(first)
            if isinstance(role, Role) and role.name not in roles:
                why = f"It calls the role {role.name!r}, which the graph does not declare."
                yield GraphIssue(ERROR, "undeclared-role", source.locate(node), why, "Add it to `Graph.roles`.")


def _find_unlimited_loops(graph: Graph, sources: SourceReader) -> list[GraphIssue]:
    from offing.testing.graph_checks.state_keys import find_loop_nodes

    drawn: Any = graph.build().compile().get_graph()
    looped = find_loop_nodes((edge.source, edge.target) for edge in drawn.edges)
    called = {name for source in sources.sources for name in _iter_method_names(source)}
    issues: list[GraphIssue] = []
    if looped and "stop_reason" not in called:
        why = "Its loop never calls `ctx.stop_reason()`, so neither a budget nor a person can end it."
        issues.append(
            GraphIssue(
                ERROR,
                "no-limit",
                graph.name,
                why,
                "Call it at the beginning of each turn, and write the report when it returns a reason.",
            )
        )
    if looped and "begin_turn" not in called:
        why = "Its loop never calls `ctx.begin_turn(n)`, so the limit on turns has no effect."
        issues.append(GraphIssue(ERROR, "no-limit", graph.name, why, "Call it in the first node of the loop."))
    return issues


def _iter_method_names(source: SourceFunction) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
