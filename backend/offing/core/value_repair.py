"""Repairs of a JSON value that a schema rejects, where exactly one value can be meant.

The schema decides: a number written as text, one value where a list is expected, a value of an
enumeration in other letters, and a field that the schema does not have. Nothing else is changed, so
a value that stays invalid is rejected with its reason as before. The functions are pure.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from offing.core.json_schema import as_mapping, as_sequence, resolve_reference

MAX_DEPTH = 40
MIN_SIMILARITY = 0.8
"""Minimum similarity of a value to the one that is meant, from 0 to 1."""
MIN_LEAD = 0.1
"""Minimum distance in similarity between the nearest and the next value. Nearer ones count as ambiguous."""

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_NAMESPACE = re.compile(r"\A.*[./:]|\A(?:functions?|tools?)_")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?")


@dataclass(frozen=True, slots=True)
class ValueRepair:
    """One repair: its name, the path of the field, and a sentence that says what was done."""

    name: str
    path: str
    note: str


@dataclass(frozen=True, slots=True)
class RepairedValue:
    value: Any
    repairs: tuple[ValueRepair, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.name for one in self.repairs))


def repair_value(schema: Mapping[str, Any], value: Any, *, lossless: bool = False) -> RepairedValue:
    """Return the value with the repairs that the schema allows.

    `lossless` means that no field is dropped and no similar value is taken, only another notation of
    the same value.
    """
    repairer = _ValueRepairer(schema, lossless)
    repaired = repairer.repair(schema, value, "", 0)
    return RepairedValue(repaired, tuple(repairer.repairs))


def find_same_name(name: str, names: Sequence[str]) -> str | None:
    """Return the only one of `names` that differs from `name` in case, punctuation and a prefix alone.

    `None` means that there is none or that there are several. `functions.search_library` and
    `SearchLibrary` are the same name as `search_library`.
    """
    for fold in (_fold, _fold_local):
        if len(same := [one for one in names if fold(one) == fold(name)]) == 1:
            return same[0]
    return None


def find_nearest(value: str, values: Sequence[str]) -> str | None:
    """Return the one of `values` that `value` resembles clearly more than the others, or `None`."""
    if same := find_same_name(value, values):
        return same
    ratios = sorted(
        ((difflib.SequenceMatcher(None, _fold(value), _fold(one)).ratio(), one) for one in values), reverse=True
    )
    if not ratios or ratios[0][0] < MIN_SIMILARITY:
        return None
    return ratios[0][1] if len(ratios) == 1 or ratios[0][0] - ratios[1][0] >= MIN_LEAD else None


def _fold(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text.casefold())


def _fold_local(name: str) -> str:
    """Fold a name without the namespace before it."""
    return _fold(_NAMESPACE.sub("", name))


@dataclass(slots=True)
class _ValueRepairer:
    root: Mapping[str, Any]
    lossless: bool
    repairs: list[ValueRepair] = field(default_factory=list[ValueRepair])

    def repair(self, schema: Any, value: Any, path: str, depth: int) -> Any:
        schema = self._resolve(schema, value)
        if depth > MAX_DEPTH or not schema:
            return value
        value = self._repair_type(schema, value, path)
        if isinstance(value, str):
            return self._repair_choice(schema, value, path)
        if isinstance(value, dict):
            return self._repair_object(schema, cast(dict[str, Any], value), path, depth)
        if isinstance(value, list) and "items" in schema:
            items = cast(list[Any], value)
            return [self.repair(schema["items"], item, f"{path}[{n}]", depth + 1) for n, item in enumerate(items)]
        return cast(Any, value)

    def _resolve(self, schema: Any, value: Any) -> Mapping[str, Any]:
        """Return the schema that applies: what a reference names, or the only alternative besides null."""
        for _ in range(MAX_DEPTH):
            fields = as_mapping(schema)
            if "$ref" in fields:
                schema = resolve_reference(self.root, fields["$ref"])
            elif options := as_sequence(fields.get("anyOf")):
                others = [one for one in options if as_mapping(one).get("type") != "null"]
                if value is None or len(others) != 1:
                    return {}
                schema = others[0]
            else:
                return fields
        return {}

    def _repair_type(self, schema: Mapping[str, Any], value: Any, path: str) -> Any:
        expected = schema.get("type")
        if expected == "array" and not isinstance(value, list) and value is not None:
            return self._note("single_value", path, [value], "one value was taken as a list of one")
        if not isinstance(value, str):
            return cast(Any, value)
        text = value.strip()
        if expected == "integer" and _INTEGER.fullmatch(text):
            return self._note("number_as_text", path, int(text), "a number in quotes was taken as a number")
        if expected == "number" and _NUMBER.fullmatch(text):
            return self._note("number_as_text", path, float(text), "a number in quotes was taken as a number")
        return cast(Any, value)

    def _repair_choice(self, schema: Mapping[str, Any], value: str, path: str) -> str:
        choices = [one for one in as_sequence(schema.get("enum")) if isinstance(one, str)]
        if not choices or value in choices:
            return value
        meant = find_same_name(value, choices) if self.lossless else find_nearest(value, choices)
        return value if meant is None else self._note("choice", path, meant, f"{value!r} was taken as {meant!r}")

    def _repair_object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        fields = as_mapping(schema.get("properties"))
        repaired: dict[str, Any] = {}
        for name, item in value.items():
            if name in fields:
                repaired[name] = self.repair(fields[name], item, _join(path, name), depth + 1)
            elif schema.get("additionalProperties") is not False or self.lossless:
                repaired[name] = item
            else:
                names = ", ".join(fields) or "none"
                self._note(
                    "extra_field",
                    _join(path, name),
                    None,
                    f"there is no such field and it was left out; the fields are: {names}",
                )
        return repaired

    def _note(self, name: str, path: str, value: Any, note: str) -> Any:
        self.repairs.append(ValueRepair(name, path, f"{path}: {note}." if path else f"{note.capitalize()}."))
        return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
