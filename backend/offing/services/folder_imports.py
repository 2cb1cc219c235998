"""Which packages and modules of a folder some code of it is made of, found from its import statements.

Reads code and never runs it. An import that is computed, as by `importlib`, is not seen.
"""

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path


def find_local(folder: Path, name: str) -> Path | None:
    """The package folder or the module file that `import NAME` means in a project folder. None: it has none."""
    for base in (folder, folder / "src"):
        if (base / name / "__init__.py").is_file():
            return base / name
        if (base / f"{name}.py").is_file():
            return base / f"{name}.py"
    return None


def with_imported(folder: Path, packages: dict[str, Path]) -> dict[str, Path]:
    """These packages and modules, and those of the same folder that they import, directly or through each other."""
    found, waiting = dict(packages), list(packages.values())
    while waiting:
        for name in _imported_by(waiting.pop()) - found.keys():
            if (local := find_local(folder, name)) is not None:
                found[name] = local
                waiting.append(local)
    return dict(sorted(found.items()))


def _imported_by(code: Path) -> set[str]:
    files = code.rglob("*.py") if code.is_dir() else [code]
    return {name for file in files if file.is_file() for name in _top_names(file.read_bytes())}


@lru_cache(maxsize=4_096)
def _top_names(source: bytes) -> frozenset[str]:
    """Top-level names that a file imports, without Python's own. Empty for one that is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a strange escape in a string is its author's affair
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(_named(ast.walk(tree))) - sys.stdlib_module_names


def _named(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
