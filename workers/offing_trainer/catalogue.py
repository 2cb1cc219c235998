"""Which plug-ins there are: those of this package, and those that other packages offer as entry points.

A built-in one is a module of one of `ROOMS` that has `PLUGIN` or `PLUGINS`; there is no list to add it to.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from offing.core.errors import OffingError
from offing.services.graphs import in_folders
from offing.settings import load_settings
from offing_trainer.seam import Plugin, Seam

ROOMS = ("views", "rewards", "selections", "advantages", "weights", "surrogates", "regularisers")

ENTRY_POINTS = "offing.training"

Catalogue = Mapping[tuple[Seam, str], Plugin]
"""By seam and name."""


class NamedTwice(OffingError):
    """Two plug-ins of one seam have the same name, so that a configuration would not say which is meant."""

    code = "plugin_named_twice"


@cache
def built_in() -> tuple[Plugin, ...]:
    """Of this package."""
    return tuple(plugin for module in _modules() for plugin in of_module(module))


def offered() -> tuple[Plugin, ...]:
    """Of other packages, installed or in folders: an entry point names a plug-in, several, or a module with them."""
    installed = [point.load() for point in entry_points(group=ENTRY_POINTS)]
    return tuple(p for offer in (*installed, *in_folders(load_settings(), ENTRY_POINTS)) for p in _plugins(offer))


def every() -> Catalogue:
    """All that are installed. Raises NamedTwice."""
    return by_name((*built_in(), *offered()))


def by_name(plugins: Iterable[Plugin]) -> Catalogue:
    """Raises NamedTwice."""
    found: dict[tuple[Seam, str], Plugin] = {}
    for plugin in plugins:
        if found.setdefault((plugin.seam, plugin.name), plugin) is not plugin:
            raise NamedTwice(f"There are two plug-ins {plugin.name} for {plugin.seam}; rename or uninstall one.")
    return found


def of_module(module: ModuleType) -> tuple[Plugin, ...]:
    """What a module offers; nothing: it is no plug-in's."""
    return _plugins(getattr(module, "PLUGINS", getattr(module, "PLUGIN", ())))


def _plugins(offer: object) -> tuple[Plugin, ...]:
    if isinstance(offer, ModuleType):
        return of_module(offer)
    offers = cast(Iterable[object], offer) if isinstance(offer, Iterable) else (offer,)
    return tuple(plugin for plugin in offers if isinstance(plugin, Plugin))


def _modules() -> Iterator[ModuleType]:
    for room in ROOMS:
        package = import_module(f"offing_trainer.{room}")
        for found in sorted(iter_modules(package.__path__), key=lambda found: found.name):
            yield import_module(f"{package.__name__}.{found.name}")
