"""Reader of the source of functions, which also resolves the names in it."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from offing.sdk.tool import CustomTool
from offing.services.versioned_imports import MODULE_PREFIX, VERSION_CHARS

UNRESOLVED = object()
SITE_PACKAGES = "site-packages"


@dataclass(frozen=True, slots=True, eq=False)
class SourceFunction:
    """Source of one function."""

    tree: ast.AST
    names: Mapping[str, Any]
    """Values of its free names: globals, closure variables, and modules that it imports itself."""
    file: str
    line: int
    package: str
    installed: bool = False
    """Whether it belongs to an installed package."""

    def locate(self, node: Any) -> str:
        return f"{self.file}:{self.line + getattr(node, 'lineno', 1) - 1}"

    def resolve(self, node: ast.AST) -> Any:
        """Return the value of an expression of dotted names, or UNRESOLVED."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, UNRESOLVED)
        if isinstance(node, ast.Attribute):
            owner: Any = self.resolve(node.value)
            if isinstance(owner, ModuleType | type):
                return getattr(owner, node.attr, UNRESOLVED)  # pyright: ignore[reportUnknownArgumentType]
            return getattr(owner.__class__, node.attr, UNRESOLVED)  # looked up on the class: no code of the value runs
        return UNRESOLVED


@dataclass(slots=True)
class SourceReader:
    """The functions that are reachable from the entry points within their packages."""

    entry_points: Iterable[Any]
    sources: list[SourceFunction] = field(default_factory=list[SourceFunction])
    follow_calls: bool = True
    """Whether calls are followed."""

    def __post_init__(self) -> None:
        waiting = [
            function for entry_point in self.entry_points if (function := _unwrap_function(entry_point)) is not None
        ]
        packages = {find_package(function) for function in waiting}
        seen: set[Any] = set()
        while waiting:
            function = waiting.pop()
            if function.__code__ in seen or find_package(function) not in packages:
                continue
            seen.add(function.__code__)
            if (source := read_source(function)) is not None:
                self.sources.append(source)
                waiting += _list_called_functions(source) if self.follow_calls else []


def read_source(function: FunctionType) -> SourceFunction | None:
    """Read the source of a function. `None` means that it was not defined in a file."""
    try:
        lines, line = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    closed = inspect.getclosurevars(function)
    names = dict(closed.builtins) | dict(function.__globals__) | dict(closed.nonlocals) | _find_local_imports(tree)
    names |= _find_own_class(function)
    return SourceFunction(tree, names, _display_name(function), line, find_package(function), _is_installed(function))


def resolve_name(node: ast.expr, source: SourceFunction) -> str:
    """Return the full name of a called function, such as `random.choice`. Empty means that it is unknown."""
    owner = source.resolve(node.value) if isinstance(node, ast.Attribute) else UNRESOLVED
    if isinstance(node, ast.Attribute) and isinstance(owner, ModuleType | type):
        return f"{_qualified_name(owner)}.{node.attr}"
    resolved = source.resolve(node)
    return "" if resolved is UNRESOLVED or isinstance(resolved, CustomTool) else _qualified_name(resolved)


def iter_own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Yield the syntax nodes of a function without those of nested functions."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def last_assignments(tree: ast.AST) -> dict[str, ast.expr | None]:
    """Return the last value that is assigned to each name."""
    assignments = (node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign))
    targets = ((t, node.value) for node in assignments for t in _list_targets(node))
    return {target.id: value for target, value in targets if isinstance(target, ast.Name)}


def _list_targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _list_called_functions(source: SourceFunction) -> list[FunctionType]:
    """Return the functions that a function names, whether it calls them or passes them on."""
    values = [source.resolve(n) for n in ast.walk(source.tree) if isinstance(n, ast.Name | ast.Attribute)]
    return [function for value in values if (function := _unwrap_function(value)) is not None]


def _unwrap_function(value: Any) -> FunctionType | None:
    """Return the function behind a method, a partial call or a property. `None` means that there is none."""
    match value:
        case FunctionType():
            return value
        case MethodType():
            return _unwrap_function(value.__func__)
        case partial():
            return _unwrap_function(value.func)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        case property():
            return _unwrap_function(value.fget)
        case _:
            return None


def _find_own_class(function: FunctionType) -> dict[str, Any]:
    """Return the class of a method as the value of `self`.

    Empty means that it is not a method, or that its class was defined inside a function.
    """
    owner: Any = function.__globals__.get(function.__qualname__.partition(".")[0])
    owned = isinstance(owner, type) and function.__qualname__.count(".") == 1
    first = function.__code__.co_varnames[:1]
    return {first[0]: owner} if owned and first else {}


def _find_local_imports(tree: ast.AST) -> dict[str, Any]:
    """Return the modules that a function imports itself, if they are already loaded."""
    import importlib

    imports: dict[str, Any] = {}
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Import):
                for name in node.names:
                    whole, top = importlib.import_module(name.name), name.name.partition(".")[0]
                    imports |= {name.asname: whole} if name.asname else {top: importlib.import_module(top)}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                owner = importlib.import_module(node.module)
                imports |= {name.asname or name.name: getattr(owner, name.name, UNRESOLVED) for name in node.names}
        except ImportError:
            continue
    return imports


def _qualified_name(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    owner = getattr(value, "__self__", None)
    if module is None and owner is not None and not isinstance(owner, ModuleType):
        return f"{type(owner).__module__}.{name}"
    return f"{module or getattr(owner, '__name__', '')}.{name}".lstrip("._")


def find_package(function: Any) -> str:
    """Return the top-level package of a function.

    Packages that were loaded from the folder of a graph version count as one package.
    """
    package = str(getattr(function, "__module__", "") or "").partition(".")[0]
    return package[: len(MODULE_PREFIX) + VERSION_CHARS] if package.startswith(MODULE_PREFIX) else package


def _display_name(function: FunctionType) -> str:
    parts = Path(function.__code__.co_filename).parts
    below = parts.index(SITE_PACKAGES) + 1 if _is_installed(function) else -2
    return "/".join(parts[below:])


def _is_installed(function: FunctionType) -> bool:
    return SITE_PACKAGES in Path(function.__code__.co_filename).parts
