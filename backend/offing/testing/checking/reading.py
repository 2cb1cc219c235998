"""The source of functions, and what names in it stand for. The only home of that; knows no rule."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from offing.sdk.tool import OwnTool
from offing.services.isolated import PREFIX, VERSION

UNKNOWN = object()
INSTALLED = "site-packages"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One function's code."""

    tree: ast.AST
    names: Mapping[str, Any]
    """What its free names are: globals, closed-over values, and modules that it imports itself."""
    file: str
    line: int
    package: str
    installed: bool = False
    """Whether it is of an installed package."""

    def place(self, node: Any) -> str:
        return f"{self.file}:{self.line + getattr(node, 'lineno', 1) - 1}"

    def value(self, node: ast.AST) -> Any:
        """What an expression of dotted names is. UNKNOWN: not to be told."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, UNKNOWN)
        if isinstance(node, ast.Attribute):
            owner: Any = self.value(node.value)
            if isinstance(owner, ModuleType | type):
                return getattr(owner, node.attr, UNKNOWN)  # pyright: ignore[reportUnknownArgumentType]
            return getattr(owner.__class__, node.attr, UNKNOWN)  # what its class has: nothing of the value's is run
        return UNKNOWN


@dataclass(slots=True)
class Reading:
    """Functions that are reached from some, within the packages that those are of."""

    beginnings: Iterable[Any]
    sources: list[Source] = field(default_factory=list[Source])
    deep: bool = True
    """Whether calls are followed."""

    def __post_init__(self) -> None:
        waiting = [function for given in self.beginnings if (function := _plain(given)) is not None]
        packages = {package_of(function) for function in waiting}
        seen: set[Any] = set()
        while waiting:
            function = waiting.pop()
            if function.__code__ in seen or package_of(function) not in packages:
                continue
            seen.add(function.__code__)
            if (source := source_of(function)) is not None:
                self.sources.append(source)
                waiting += _called(source) if self.deep else []


def source_of(function: FunctionType) -> Source | None:
    """None: it was not made from a file."""
    try:
        lines, line = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    closed = inspect.getclosurevars(function)
    names = dict(closed.builtins) | dict(function.__globals__) | dict(closed.nonlocals) | _imported(tree)
    names |= _own_class(function)
    return Source(tree, names, _shown(function), line, package_of(function), _is_installed(function))


def named(node: ast.expr, source: Source) -> str:
    """The full name of what is called, such as `random.choice`. Empty: it cannot be told."""
    owner = source.value(node.value) if isinstance(node, ast.Attribute) else UNKNOWN
    if isinstance(node, ast.Attribute) and isinstance(owner, ModuleType | type):
        return f"{_name(owner)}.{node.attr}"
    found = source.value(node)
    return "" if found is UNKNOWN or isinstance(found, OwnTool) else _name(found)


def own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def named_so(tree: ast.AST) -> dict[str, ast.expr | None]:
    """What names are given to: the last assignment of each."""
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign))
    targets = ((t, node.value) for node in given for t in _targets(node))
    return {target.id: value for target, value in targets if isinstance(target, ast.Name)}


def _targets(assigned: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]


def _called(source: Source) -> list[FunctionType]:
    """Functions that a function names: called here, or handed on."""
    found = [source.value(n) for n in ast.walk(source.tree) if isinstance(n, ast.Name | ast.Attribute)]
    return [function for value in found if (function := _plain(value)) is not None]


def _plain(value: Any) -> FunctionType | None:
    """The function behind a method, a partial call or a property. None: there is none."""
    match value:
        case FunctionType():
            return value
        case MethodType():
            return _plain(value.__func__)
        case partial():
            return _plain(value.func)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        case property():
            return _plain(value.fget)
        case _:
            return None


def _own_class(function: FunctionType) -> dict[str, Any]:
    """`self` of a method, as its class. Empty: it is none, or its class was made inside a function."""
    found: Any = function.__globals__.get(function.__qualname__.partition(".")[0])
    owned = isinstance(found, type) and function.__qualname__.count(".") == 1
    first = function.__code__.co_varnames[:1]
    return {first[0]: found} if owned and first else {}


def _imported(tree: ast.AST) -> dict[str, Any]:
    """Modules that a function imports itself, of those that are there anyway."""
    import importlib

    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Import):
                for name in node.names:
                    whole, top = importlib.import_module(name.name), name.name.partition(".")[0]
                    found |= {name.asname: whole} if name.asname else {top: importlib.import_module(top)}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                owner = importlib.import_module(node.module)
                found |= {name.asname or name.name: getattr(owner, name.name, UNKNOWN) for name in node.names}
        except ImportError:
            continue
    return found


def _name(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    owner = getattr(value, "__self__", None)
    if module is None and owner is not None and not isinstance(owner, ModuleType):
        return f"{type(owner).__module__}.{name}"
    return f"{module or getattr(owner, '__name__', '')}.{name}".lstrip("._")


def package_of(function: Any) -> str:
    """The top-level package of a function; packages that a folder's version is made of count as one."""
    package = str(getattr(function, "__module__", "") or "").partition(".")[0]
    return package[: len(PREFIX) + VERSION] if package.startswith(PREFIX) else package


def _shown(function: FunctionType) -> str:
    parts = Path(function.__code__.co_filename).parts
    below = parts.index(INSTALLED) + 1 if _is_installed(function) else -2
    return "/".join(parts[below:])


def _is_installed(function: FunctionType) -> bool:
    return INSTALLED in Path(function.__code__.co_filename).parts
