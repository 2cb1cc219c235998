"""Python packages imported from a folder under a name of their own, so that two versions of one can be in use at once.

The only home of that import machinery. Knows no graph. A version's modules see one another under the package's usual
name, by `import` statements and relative ones; nothing else sees them, and they see no other version.
"""

import builtins
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

PREFIX = "offing_loaded_"

VERSION = 16
"""Characters of a version that follow it in the names of modules."""


def load(folder: Path, packages: tuple[str, ...], version: str, target: str) -> object:
    """What `module:name` is in the packages under `folder`, which are known as this version; the module without a name.

    Raises what they raise. The files are read as they are when a module is first imported; let them never change for a
    version.
    """
    module, _, name = target.partition(":")
    _finder.take(folder, packages, version)
    found: object = importlib.import_module(_alias(version, module))
    for part in filter(None, name.split(".")):
        if not hasattr(found, part):
            raise AttributeError(f"there is no {name} in {module}, which {target} names")
        found = getattr(found, part)
    return found


def forget(version: str) -> None:
    """Drop the modules of a version that could not be loaded, so that a later try begins anew."""
    for name in [name for name in sys.modules if name.startswith(_alias(version, ""))]:
        del sys.modules[name]


def with_usual_names(text: str) -> str:
    """A message of Python's, with the names that an author knows the modules by."""
    return re.sub(rf"{PREFIX}[0-9a-f]{{{VERSION}}}_", "", text)


def _alias(version: str, module: str) -> str:
    return f"{PREFIX}{version[:VERSION]}_{module}"


class _Finder(MetaPathFinder):
    """Finds the modules of the versions that were taken in."""

    def __init__(self) -> None:
        self._packages: dict[str, tuple[Path, Mapping[str, Any]]] = {}

    def take(self, folder: Path, packages: tuple[str, ...], version: str) -> None:
        """`folder` is where the version's modules are imported from that have not been yet.

        The folder that was named last, because copies of one version under two homes are the same, and an earlier one
        may be gone; what fails to be imported is told with its place in the copy that was asked for.
        """
        names = {package: _alias(version, package) for package in packages}
        seen = dict(vars(builtins)) | {"__import__": _importing(names)}
        for package, alias in names.items():
            self._packages[alias] = (folder / package, seen)

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        top, *parts = fullname.split(".")
        if top not in self._packages:
            return None
        folder, seen = self._packages[top]
        place = folder.joinpath(*parts)
        init, module = place / "__init__.py", place.with_suffix(".py")
        file = init if init.is_file() else module
        if not file.is_file():
            return None
        inner = [str(place)] if file is init else None
        loader = _Loader(fullname, str(file), seen)
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inner)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, seen: Mapping[str, Any]) -> None:
        super().__init__(fullname, path)
        self._seen = seen

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._seen
        super().exec_module(module)


def _importing(names: Mapping[str, str]) -> Callable[..., ModuleType]:
    """`__import__` for a version's modules: its own packages by their usual names, everything else as ever."""

    def importing(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top, dot, rest = name.partition(".")
        if level or top not in names:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        renamed = names[top] + dot + rest
        if fromlist:
            return builtins.__import__(renamed, globals, locals, fromlist, 0)
        importlib.import_module(renamed)
        return sys.modules[names[top]]

    return importing


_finder = _Finder()
sys.meta_path.insert(0, _finder)
