"""Find the packages and modules of a folder that a package imports, from its import statements.

The code is read and never executed. Computed imports, as with `importlib`, are not found.
"""

import ast
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path


def find_local_package(folder: Path, name: str) -> Path | None:
    """Return the package folder or module file of `import NAME` in a project folder, or `None`."""
    for base in (folder, folder / "src"):
        if (base / name / "__init__.py").is_file():
            return base / name
        if (base / f"{name}.py").is_file():
            return base / f"{name}.py"
    return None


def add_imported_packages(folder: Path, packages: dict[str, Path]) -> dict[str, Path]:
    """Return the given packages and modules with those of the same folder that they import, directly or indirectly."""
    return add_found_packages(packages, partial(find_local_package, folder))


def add_found_packages(packages: dict[str, Path], find: Callable[[str], Path | None]) -> dict[str, Path]:
    """Return the given packages and modules with those that they import, directly or indirectly, and `find` returns."""
    all_packages, waiting = dict(packages), list(packages.values())
    while waiting:
        for name in _imported_names(waiting.pop()) - all_packages.keys():
            if (local := find(name)) is not None:
                all_packages[name] = local
                waiting.append(local)
    return dict(sorted(all_packages.items()))


def _imported_names(code: Path) -> set[str]:
    files = code.rglob("*.py") if code.is_dir() else [code]
    return {name for file in files if file.is_file() for name in _parse_top_level_names(file.read_bytes())}


@lru_cache(maxsize=4_096)
def _parse_top_level_names(source: bytes) -> frozenset[str]:
    """Return the top-level names that a file imports, except those of the standard library.

    Empty for a file that is not Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a string concerns only its author
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(_iter_imported_names(ast.walk(tree))) - sys.stdlib_module_names


def _iter_imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
