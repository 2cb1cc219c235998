"""Registration: values that packages provide to Offing, found by name.

A package registers a value as an entry point: a group, a name and `module:value`. Offing registers its own graphs,
tools and engines in the same way, in `pyproject.toml`. A folder of graphs registers values in its own
`pyproject.toml` without being installed; see `add_folder`.

Each group has one `Registry`, in the module of the type of its values, such as `offing.scorers.SCORERS`.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from offing.core.errors import InvalidInput

if TYPE_CHECKING:
    from importlib.metadata import Distribution

T = TypeVar("T")


class Group(StrEnum):
    """The entry point groups in which a package may register values. docs/sdk.md describes the values."""

    GRAPHS = "offing.graphs"
    TOOLS = "offing.tools"
    ENGINES = "offing.engines"
    SCORERS = "offing.scorers"
    SEARCH_ENGINES = "offing.search_engines"
    EXPORT_FORMATS = "offing.export_formats"
    DATASET_FORMATS = "offing.dataset_formats"
    TRAINING = "offing.training"
    ENVIRONMENTS = "offing.environments"
    COMMANDS = "offing.commands"


@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """One entry point. Its value is imported by `load`."""

    name: str
    target: str
    """Location of the value as `module:value`."""
    owner: str
    """The package or folder that registers it, for messages."""
    load: Callable[[], Any]
    distribution: "Distribution | None" = None
    """`None` for an entry point of a folder."""


class MissingPackageError(InvalidInput):
    """A registered value needs a package that is not installed."""


class Registry(Mapping[str, T]):
    """The values of one entry point group by name.

    Names are read without an import; a value is imported when it is first read. Reading a value raises
    `InvalidInput` if two packages register the name, or if the value is of the wrong type.
    """

    def __init__(
        self,
        group: Group,
        noun: str,
        *,
        accepts: Callable[[Any], bool],
        remedy: str,
        name_of: Callable[[T], str] | None = None,
    ) -> None:
        """`noun` and `remedy` appear in errors and describe a valid value, such as `a scorer`.

        `name_of` returns the name of a value, which must be that of its entry point. `None` means that values
        have no name.
        """
        self.group, self.noun = group, noun
        self._accepts, self._remedy, self._name_of = accepts, remedy, name_of
        self._values: dict[str, tuple[Registration, T]] = {}

    def __getitem__(self, name: str) -> T:
        registration = self._get_only(name)
        known = self._values.get(name)
        if known is None or known[0] is not registration:
            known = self._values[name] = (registration, self._load(registration))
        return known[1]

    def __iter__(self) -> Iterator[str]:
        return iter(list_names(self.group))

    def __len__(self) -> int:
        return len(self._find_all())

    def __contains__(self, name: object) -> bool:
        return name in self._find_all()

    def get_named(self, name: str, field: str) -> T:
        """Return the value of a name. Raises `InvalidInput` for `field` if nothing is registered under it."""
        if name not in self:
            remedy = f"Use one of: {', '.join(self)}."
            raise InvalidInput(field, f"there is no {self.noun.partition(' ')[2]} {name!r}", remedy)
        return self[name]

    def iter_usable(self) -> Iterator[T]:
        """Yield the values in the order of their names, without those that need a package that is not installed."""
        for name in self:
            try:
                yield self[name]
            except MissingPackageError:
                continue

    def get_owner(self, name: str) -> str:
        """Return the package or folder that registers a name. Raises `KeyError` if there is none."""
        return self._get_only(name).owner

    def _find_all(self) -> Mapping[str, Sequence[Registration]]:
        return _find_registrations(self.group)

    def _get_only(self, name: str) -> Registration:
        first, *others = self._find_all()[name]
        if others:
            owners = " and ".join(f"{one.owner} ({one.target})" for one in (first, *others))
            problem = f"the name {name!r} is registered twice, by {owners}"
            raise InvalidInput(self.group, problem, "Rename one of them, or uninstall one of the packages.")
        return first

    def _load(self, registration: Registration) -> T:
        value = _import_value(registration, self.group)
        described = f"{registration.name!r} of {registration.owner} ({registration.target})"
        if not self._accepts(value):
            raise InvalidInput(self.group, f"{described} is {_describe(value)}, not {self.noun}", self._remedy)
        if self._name_of is not None and (own := self._name_of(value)) != registration.name:
            problem = f"{described} has the name {own!r}"
            raise InvalidInput(self.group, problem, "Give the entry point and its value the same name.")
        return value


def add_folder(folder: str, registrations: Mapping[Group, Sequence[Registration]]) -> None:
    """Register the values of a folder by group. They replace its earlier values.

    Raises `InvalidInput`, and changes nothing, if another folder or an installed package has one of the names.
    """
    for group, names in registrations.items():
        for one in names:
            others = _find_registrations(group, without=folder).get(one.name, ())
            if others:
                problem = f"the name {one.name!r} is registered twice, by {others[0].owner} and {one.owner}"
                raise InvalidInput(group, problem, "Rename the registration of the folder.")
    _folders[folder] = registrations


def list_names(group: Group) -> list[str]:
    """List the names that are registered in a group, without an import."""
    return sorted(_find_registrations(group))


def has_attributes(*names: str) -> Callable[[Any], bool]:
    """Return a check that a value is an instance with these attributes."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)


_folders: dict[str, Mapping[Group, Sequence[Registration]]] = {}
"""Registrations of folders, by folder and then by group."""


def _find_registrations(group: Group, without: str = "") -> Mapping[str, Sequence[Registration]]:
    installed = _read_installed(tuple(sys.path))[group]
    from_folders = [one for folder, offers in _folders.items() if folder != without for one in offers.get(group, ())]
    if not from_folders:
        return installed
    registrations = {name: list(ones) for name, ones in installed.items()}
    for one in from_folders:
        registrations.setdefault(one.name, []).append(one)
    return registrations


@lru_cache(maxsize=8)
def _read_installed(_path: tuple[str, ...]) -> Mapping[str, Mapping[str, Sequence[Registration]]]:
    """Return the registrations of installed packages, by group and name.

    Reading the metadata of all packages takes tens of milliseconds, so it is read once for each `sys.path`, and the
    name of a package once for all that it registers.
    """
    from importlib.metadata import entry_points

    points, registrations, owners = entry_points(), dict[str, dict[str, list[Registration]]](), dict[int, str]()
    for group in Group:
        named = registrations[group] = {}
        for point in points.select(group=group):
            if id(point.dist) not in owners:
                owners[id(point.dist)] = (
                    f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
                )
            one = Registration(point.name, point.value, owners[id(point.dist)], point.load, point.dist)
            named.setdefault(point.name, []).append(one)
    return registrations


def _import_value(registration: Registration, group: Group) -> Any:
    try:
        return registration.load()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        described = f"{registration.name!r} of {registration.owner}"
        if missing == registration.target.partition(":")[0].partition(".")[0]:
            problem = f"{described} refers to the module {error.name}, which does not exist"
            raise InvalidInput(group, problem, "Correct the entry point.") from error
        problem = f"{described} needs the package {missing}, which is not installed"
        raise MissingPackageError(group, problem, _describe_installation(registration, missing)) from error
    except Exception as error:
        error.add_note(f"This happened while {registration.target} was imported for {registration.owner} ({group}).")
        raise


def _describe_installation(registration: Registration, package: str) -> str:
    """Return how to install a package, by the extra of the registering package that has it, if one has."""
    distribution = registration.distribution
    for requirement in (distribution.requires or ()) if distribution else ():
        match = re.match(rf"{re.escape(package)}\b.*extra == ['\"]([\w.-]+)['\"]", requirement, re.IGNORECASE)
        if distribution and match:
            return f"Install the extra: pip install '{distribution.name}[{match[1]}]'."
    return f"Install {package}."


def _describe(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
