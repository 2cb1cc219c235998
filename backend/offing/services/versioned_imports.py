"""Import Python packages from a folder under a private name, so that several versions can be in use at once.

The modules of a version import one another under the package's usual name, absolutely or relatively. No
other code sees them, and they see no other version.
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

MODULE_PREFIX = "offing_loaded_"

VERSION_CHARS = 16
"""Number of characters of a version in the names of its modules."""


def load_module(folder: Path, packages: tuple[str, ...], version: str, target: str) -> object:
    """Return `module:name` from the packages in `folder`, or the module if no name is given.

    Raises the errors of the import. The files are read when a module is first imported, so they must never
    change for a version.
    """
    module, _, name = target.partition(":")
    _finder.add_version(folder, packages, version)
    module_value: object = importlib.import_module(_alias(version, module))
    for part in filter(None, name.split(".")):
        if not hasattr(module_value, part):
            raise AttributeError(f"module {module} has no {name}, which {target} refers to")
        module_value = getattr(module_value, part)
    return module_value


def unload_version(version: str) -> None:
    """Remove the modules of a version that could not be loaded, so that a later attempt starts from the beginning."""
    for name in [name for name in sys.modules if name.startswith(_alias(version, ""))]:
        del sys.modules[name]


def restore_module_names(text: str) -> str:
    """Replace private module names in an error message of Python by the names in the author's code."""
    return re.sub(rf"{MODULE_PREFIX}[0-9a-f]{{{VERSION_CHARS}}}_", "", text)


def _alias(version: str, module: str) -> str:
    return f"{MODULE_PREFIX}{version[:VERSION_CHARS]}_{module}"


class _VersionedFinder(MetaPathFinder):
    """Finds the modules of the versions that were added."""

    def __init__(self) -> None:
        self._packages: dict[str, tuple[Path, Mapping[str, Any]]] = {}

    def add_version(self, folder: Path, packages: tuple[str, ...], version: str) -> None:
        """Import the modules of a version from `folder`, unless they are already imported.

        The folder added last is used: copies of one version in two data directories are equal, an earlier one may
        have been deleted, and errors should show the path that the caller named.
        """
        names = {package: _alias(version, package) for package in packages}
        seen = dict(vars(builtins)) | {"__import__": _build_import(names)}
        for package, alias in names.items():
            self._packages[alias] = (folder / package, seen)

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        top, *parts = fullname.split(".")
        if top not in self._packages:
            return None
        folder, seen = self._packages[top]
        base_path = folder.joinpath(*parts)
        init, module = base_path / "__init__.py", base_path.with_suffix(".py")
        file = init if init.is_file() else module
        if not file.is_file():
            return _find_namespace(fullname, base_path)
        inner = [str(base_path)] if file is init else None
        loader = _VersionedLoader(fullname, str(file), seen)
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inner)


def _find_namespace(fullname: str, folder: Path) -> ModuleSpec | None:
    """Return the spec of a folder without `__init__.py`, as Python's own namespace packages. `None` if it is none."""
    if not folder.is_dir():
        return None
    spec = ModuleSpec(fullname, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    return spec


class _VersionedLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, builtins_override: Mapping[str, Any]) -> None:
        super().__init__(fullname, path)
        self._seen = builtins_override

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._seen
        super().exec_module(module)


def _build_import(names: Mapping[str, str]) -> Callable[..., ModuleType]:
    """Return an `__import__` for the modules of a version, which resolves its own packages by their usual names."""

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


_finder = _VersionedFinder()
sys.meta_path.insert(0, _finder)
