"""Typed access to the JSON of a configuration file, with errors that name the key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import ConfigNotice, ObjectReference

JAVASCRIPT_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


def parse_reference(text: str, field: str) -> ObjectReference:
    """Parse `path.py:variable` or `module:variable`. Raises InvalidInput for `field`."""
    location, separator, variable = text.rpartition(":")
    if not separator or not location or not variable.replace(".", "").isidentifier():
        raise InvalidInput(
            field, f"{text!r} is not a reference", "Use path/to/file.py:variable, or package.module:variable."
        )
    return ObjectReference(location, variable)


@dataclass(frozen=True, slots=True)
class ConfigReader:
    """A mapping of the file with its place, for errors."""

    file: str
    prefix: str
    document: Any

    def __post_init__(self) -> None:
        if not isinstance(self.document, Mapping):
            raise InvalidInput(self.name(), f"is {describe(self.document)}, not an object", "Use {…}.")

    def name(self, key: str = "") -> str:
        """Return the name of a key in errors."""
        path = ".".join(part for part in (self.prefix, key) if part)
        return f"{self.file}: {path}" if path else self.file

    def path(self, key: str) -> str:
        return f"{self.prefix}.{key}" if self.prefix else key

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(str, cast(Mapping[Any, Any], self.document)))

    def get(self, key: str) -> Any:
        return cast(Mapping[str, Any], self.document).get(key)

    def read(self, key: str, kind: type, described: str) -> Any:
        """Return the value of a key, or `None` if it is absent or null. Raises InvalidInput for another type."""
        value = self.get(key)
        is_number_like = isinstance(value, bool) and kind is not bool
        if value is None or (isinstance(value, kind) and not is_number_like):
            return value
        raise InvalidInput(self.name(key), f"is {describe(value)}, not {described}", "Correct or remove it.")

    def text(self, key: str) -> str:
        return self.read(key, str, "text") or ""

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.read(key, bool, "true or false")
        return default if value is None else value

    def whole_number(self, key: str) -> int | None:
        return self.read(key, int, "a whole number")

    def minutes(self, key: str) -> float | None:
        value = self.read(key, int | float, "a number of minutes")  # type: ignore[arg-type]
        if value is not None and value <= 0:
            raise InvalidInput(self.name(key), "is not more than 0 minutes", "Use a positive number, or remove it.")
        return value

    def inner(self, key: str) -> "ConfigReader | None":
        """Return the object under a key, or `None` if it is absent or null."""
        value = self.get(key)
        return None if value is None else ConfigReader(self.file, self.path(key), value)

    def texts(self, key: str) -> tuple[str, ...]:
        values: list[Any] = self.read(key, list, "a list of texts") or []
        for one in values:
            if not isinstance(one, str):
                raise InvalidInput(self.name(key), f"contains {describe(one)}, not only texts", "Correct it.")
        return tuple(values)

    def unknown(self, *known: str) -> Iterator[ConfigNotice]:
        """Yield a notice for each key that is not known."""
        for key in self.keys:
            if key not in known:
                yield ConfigNotice(self.path(key), "This key is not known. It has no effect.")


def describe(value: object) -> str:
    """Return the JSON type of a value in words."""
    names = {"dict": "an object", "list": "a list", "str": "a text", "bool": "a truth value", "NoneType": "null"}
    return names.get(type(value).__name__, "a number")
