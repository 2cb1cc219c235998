"""Rename symbols and modules over the whole tree: `python -m tests.glossary.rename TABLE...`.

A table is a text file with one rename per line: what is renamed, a tab, and the new name. A symbol is written as its
path, a
colon and its dotted name (`backend/offing/bus/live.py:Doing.text`), where the last part may also be a parameter, an
attribute of `self` or a local variable. A module or folder is written as its path, with the new path after the tab.
Lines
that start with `#` are comments. A third column `S` marks a name that is also stored or public; such lines are left out
unless `--stored` is given, because SQL, JSON and the web UI have to change with them.

pyright finds the uses of every symbol in the unchanged tree, then all edits are made at once.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .language_server import LanguageServer, Range

ROOT = Path(__file__).parents[2]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TEXT_SUFFIXES = (".py", ".toml", ".yaml", ".yml", ".sh", ".cfg", "")


@dataclass(frozen=True)
class SymbolRename:
    path: Path
    scope: tuple[str, ...]
    name: str
    new: str


@dataclass(frozen=True)
class ModuleRename:
    path: str
    new: str


@dataclass(frozen=True)
class Position:
    line: int
    column: int


def read_table(text: str, stored: bool) -> Iterator[SymbolRename | ModuleRename]:
    for line in text.splitlines():
        columns = line.rstrip("\n").split("\t")
        if line.startswith("#") or len(columns) < 2 or "=" in columns[0]:
            continue
        flags = columns[2].split() if len(columns) > 2 else []
        if ("S" in flags or any(flag.startswith("S") for flag in flags)) != stored:
            continue
        if ":" in columns[0]:
            path, _, dotted = columns[0].strip().partition(":")
            *scope, name = dotted.split(".")
            yield SymbolRename(ROOT / path, tuple(scope), name, columns[1].strip())
        else:
            yield ModuleRename(columns[0].strip(), columns[1].strip())


def find_definitions(tree: ast.Module, lines: Sequence[str], rename: SymbolRename) -> list[Position]:
    """Return the positions at which the symbol is defined: more than one for overloads and properties."""
    scopes: list[ast.AST] = [tree]
    for part in rename.scope:
        scopes = [node for scope in scopes for node in _statements(scope) if _is_scope(node, part)]
    return [position for scope in scopes for position in _bindings(scope, rename.name, lines)]


def _is_scope(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.ClassDef, *FUNCTIONS)) and node.name == name


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of the functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (ast.ClassDef, *FUNCTIONS, ast.Lambda)):
            yield from _statements(child)


def _bindings(scope: ast.AST, name: str, lines: Sequence[str]) -> Iterator[Position]:
    found = list(_own_bindings(scope, name, lines))
    if not found and isinstance(scope, ast.ClassDef):
        found = list(_self_attributes(scope, name, lines)) or list(_init_parameters(scope, name, lines))
    yield from found


def _init_parameters(scope: ast.ClassDef, name: str, lines: Sequence[str]) -> Iterator[Position]:
    for node in scope.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from _own_bindings(node, name, lines)


def _own_bindings(scope: ast.AST, name: str, lines: Sequence[str]) -> Iterator[Position]:
    for node in _statements(scope):
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and node.name == name:
            yield _position_of_def(node, lines)
        elif isinstance(node, ast.arg) and node.arg == name:
            yield _position(node.lineno, node.col_offset, lines)
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            yield _position(node.lineno, node.col_offset, lines)
            if not isinstance(scope, ast.ClassDef):
                return


def _self_attributes(scope: ast.ClassDef, name: str, lines: Sequence[str]) -> Iterator[Position]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            yield _position(node.end_lineno, node.end_col_offset - len(name), lines)
            return


def _position_of_def(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]) -> Position:
    text = lines[node.lineno - 1]
    match = re.compile(r"(class|def)\s+").search(text, node.col_offset)
    assert match is not None
    return Position(node.lineno - 1, match.end())


def _position(line: int, byte_column: int, lines: Sequence[str]) -> Position:
    before = lines[line - 1].encode()[:byte_column].decode()
    return Position(line - 1, len(before.encode("utf-16-le")) // 2)


Edits = dict[Path, dict[Range, str]]


def collect_edits(renames: Iterable[SymbolRename]) -> tuple[Edits, list[str]]:
    """Return the edits of every file, and what could not be found or contradicts itself."""
    edits: Edits = {}
    problems: list[str] = []
    server = LanguageServer(ROOT)
    try:
        server.wait_until_ready()
        for count, rename in enumerate(renames):
            if count % 200 == 199:
                print(f"… {count + 1}", file=sys.stderr, flush=True)
            problems += _collect(server, rename, edits)
    finally:
        server.close()
    return edits, problems


def _collect(server: LanguageServer, rename: SymbolRename, edits: Edits) -> Iterator[str]:
    spec = f"{rename.path.relative_to(ROOT)}:{'.'.join((*rename.scope, rename.name))}"
    if not rename.path.exists():
        yield f"{spec}: there is no such file"
        return
    text = rename.path.read_text()
    positions = find_definitions(ast.parse(text), text.splitlines(), rename)
    if not positions:
        yield f"{spec}: there is no such name"
    for position in positions:
        for path, found in server.find_references(rename.path, position.line, position.column):
            if not path.is_relative_to(ROOT) or ".venv" in path.parts:
                yield f"{spec}: is also used in {path}"
                continue
            yield from _add(edits, path, found, rename, spec)


def _add(edits: Edits, path: Path, found: Range, rename: SymbolRename, spec: str) -> Iterator[str]:
    if _text_at(path, found) != rename.name:
        return
    before = edits.setdefault(path, {}).setdefault(found, rename.new)
    if before != rename.new:
        yield f"{spec}: {path.relative_to(ROOT)}:{found[0] + 1} is also to become {before}"


_lines: dict[Path, list[str]] = {}


def _text_at(path: Path, found: Range) -> str:
    lines = _lines.setdefault(path, path.read_text().split("\n"))
    encoded = lines[found[0]].encode("utf-16-le")
    return encoded[2 * found[1] : 2 * found[3]].decode("utf-16-le")


def apply_edits(edits: Edits) -> None:
    for path, changes in edits.items():
        lines = path.read_text().split("\n")
        for (line, start, _, end), new in sorted(changes.items(), reverse=True):
            encoded = lines[line].encode("utf-16-le")
            lines[line] = (encoded[: 2 * start] + new.encode("utf-16-le") + encoded[2 * end :]).decode("utf-16-le")
        path.write_text("\n".join(lines))


def save_edits(edits: Edits, to: Path) -> None:
    rows = [
        (str(path.relative_to(ROOT)), *place, new) for path, changes in edits.items() for place, new in changes.items()
    ]
    to.write_text(json.dumps(rows))


def _merge(edits: Edits, saved: Path) -> None:
    for path, line, start, last, end, new in json.loads(saved.read_text()):
        before = edits.setdefault(ROOT / path, {}).setdefault((line, start, last, end), new)
        if before != new:
            print(f"{path}:{line + 1}: both {before} and {new}")


def move_modules(renames: Sequence[ModuleRename]) -> None:
    """Move files and folders, and change every import and dotted name of them. Two files with one new name are
    joined.
    """
    moves: dict[str, str] = {}
    for rename in sorted(renames, key=lambda rename: not rename.path.endswith("/")):
        for old, new in _files_of(rename):
            moves[old] = new
    names = {_dotted(old): _dotted(new) for old, new in moves.items() if old.endswith(".py")}
    folders = {r.path.rstrip("/"): r.new.rstrip("/") for r in renames if r.path.endswith("/")}
    for old, new in folders.items():
        names.setdefault(_dotted(old), _dotted(new))
    _rewrite_imports(names, folders | moves)
    for new in dict.fromkeys(moves.values()):
        _move(sorted((old for old in moves if moves[old] == new), key=lambda old: old != new), new)


def _move(olds: Sequence[str], new: str) -> None:
    texts = [(ROOT / old).read_text() for old in olds]
    (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
    if olds != [new]:
        subprocess.run(
            ["git", "mv", "-f" if new in olds else "-k", next(o for o in olds if o != new), new], cwd=ROOT, check=True
        )
    for old in olds:
        if old != new and (ROOT / old).exists():
            subprocess.run(["git", "rm", "-qf", old], cwd=ROOT, check=True)
    if len(olds) > 1:
        (ROOT / new).write_text(_joined(texts, _dotted(new)))


def _joined(texts: Sequence[str], module: str) -> str:
    """Return the text of several modules as one: the first one's docstring, all imports, and the rest in order."""
    imports: list[str] = []
    bodies: list[str] = []
    docstring = ""
    for nth, text in enumerate(texts):
        lines = text.split("\n")
        kept = list(lines)
        for node in ast.parse(text).body:
            segment = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            is_docstring = node.lineno == 1 and isinstance(node, ast.Expr)
            if is_docstring and nth == 0:
                docstring = segment
            if is_docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
                for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                    kept[number] = ""
                if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == module):
                    imports.append(segment)
        bodies.append("\n".join(kept).strip("\n"))
    return docstring + "\n\n" + "\n".join(imports) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def _files_of(rename: ModuleRename) -> Iterator[tuple[str, str]]:
    if not rename.path.endswith("/"):
        yield rename.path, rename.new
        return
    for path in _tracked(rename.path):
        yield path, rename.new + path.removeprefix(rename.path)


def _tracked(*under: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *under], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def _dotted(path: str) -> str:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return re.sub(r"^(backend|workers|graphs)\.", "", name)


def _rewrite_imports(names: dict[str, str], moves: dict[str, str]) -> None:
    if not moves:
        return
    # A name or path of a single part may be a word of a sentence.
    pattern = re.compile(rf"(?<![\w.])({_alternatives(name for name in names if '.' in name)})(?![\w])")
    paths = re.compile(_alternatives(old for old in moves if "/" in old))
    for path in _tracked():
        file = ROOT / path
        if file.suffix not in TEXT_SUFFIXES or not file.is_file():
            continue
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        new = text
        if file.suffix == ".py":
            new = _rewrite_from_imports(new, names, _dotted(path), is_package=path.endswith("__init__.py"))
        new = pattern.sub(lambda match: names[match[1]], new)
        new = paths.sub(lambda match: moves[match[0]], new)
        if new != text:
            file.write_text(new)


def _alternatives(texts: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True)) or r"(?!)"


def _rewrite_from_imports(text: str, names: dict[str, str], module: str, is_package: bool) -> str:
    """Rewrite `from package import module` and relative imports, and the uses of a module's name in the file."""
    tree = ast.parse(text)
    lines = text.split("\n")
    package = module if is_package else module.rpartition(".")[0]
    new_module = names.get(module, module)
    new_package = new_module if is_package else new_module.rpartition(".")[0]
    used: dict[str, str] = {}
    for node in sorted((n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), key=lambda n: -n.lineno):
        absolute = _absolute(node, package)
        if absolute is None or not _concerns(node, absolute, names, package, new_package):
            continue
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            full = f"{absolute}.{alias.name}"
            if full in names:
                source, _, name = names[full].rpartition(".")
                if alias.asname is None and name != alias.name:
                    used[alias.name] = name
            else:
                source, name = names.get(absolute, absolute), alias.name
            groups.setdefault(source, []).append(f"{name} as {alias.asname}" if alias.asname else name)
        indent = lines[node.lineno - 1][: node.col_offset]
        written = [
            f"{indent}from {_relative(source, new_package) if node.level else source} import {', '.join(items)}"
            for source, items in groups.items()
        ]
        assert node.end_lineno is not None
        tail = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        written[-1] += tail
        lines[node.lineno - 1 : node.end_lineno] = written
    text = "\n".join(lines)
    return _rename_module_uses(text, used) if used else text


def _concerns(node: ast.ImportFrom, absolute: str, names: dict[str, str], package: str, new_package: str) -> bool:
    changed = absolute in names or any(f"{absolute}.{alias.name}" in names for alias in node.names)
    return changed or (node.level > 0 and package != new_package)


def _absolute(node: ast.ImportFrom, package: str) -> str | None:
    if node.level == 0:
        return node.module
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _relative(source: str, package: str) -> str:
    here, there = package.split("."), source.split(".")
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    if common == 0:
        return source
    return "." * (len(here) - common + 1) + ".".join(there[common:])


def _rename_module_uses(text: str, used: dict[str, str]) -> str:
    tree = ast.parse(text)
    lines = text.split("\n")
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for old, new in used.items():
        if old in stored or new in stored:
            print(f"check by hand: module {old} → {new} beside a variable of that name: {text[:60]!r}", file=sys.stderr)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in used and isinstance(n.ctx, ast.Load)]
    for node in sorted(found, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        line = lines[node.lineno - 1].encode()
        end = node.col_offset + len(node.id)
        lines[node.lineno - 1] = (line[: node.col_offset] + used[node.id].encode() + line[end:]).decode()
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--stored", action="store_true", help="only the lines with the flag S")
    parser.add_argument("--dry", action="store_true", help="say what cannot be done, and change nothing")
    parser.add_argument("--only", choices=("symbols", "modules"))
    parser.add_argument(
        "--part", help="2/4: only the second quarter of the symbols, to share the work between processes"
    )
    parser.add_argument("--save", type=Path, help="write the edits to this file instead of making them")
    parser.add_argument("--apply", nargs="*", type=Path, default=[], help="make the edits of these files as well")
    options = parser.parse_args()
    renames = [rename for table in options.tables for rename in read_table(table.read_text(), options.stored)]
    symbols = [rename for rename in renames if isinstance(rename, SymbolRename)]
    modules = [rename for rename in renames if isinstance(rename, ModuleRename)]
    if options.part:
        nth, _, of = options.part.partition("/")
        symbols = symbols[len(symbols) * (int(nth) - 1) // int(of) : len(symbols) * int(nth) // int(of)]
    edits: Edits = {}
    for saved in options.apply:
        _merge(edits, saved)
    if options.only != "modules" and not options.apply:
        edits, problems = collect_edits(symbols)
        print("\n".join(problems))
        print(f"{len(symbols)} symbols, {sum(map(len, edits.values()))} edits in {len(edits)} files", file=sys.stderr)
    if options.save:
        save_edits(edits, options.save)
    elif not options.dry:
        apply_edits(edits)
    if options.only != "symbols" and not options.dry:
        move_modules(modules)


if __name__ == "__main__":
    main()
