"""Validation of a value against a JSON schema, with errors that name the field and the allowed values.

The schema comes from a graph, so validation is bounded: at most `MAX_CHECKS` values and `MAX_DEPTH`
levels, no references outside the schema, and no `pattern` that could be slow. Unknown keywords do
not restrict a value.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.text_formats import check_text

MAX_CHECKS = 20_000
MAX_DEPTH = 60
PATTERN_COST = 100
"""Number of checks that one pattern match counts as, because it may take a few milliseconds."""

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer())),
    "number": ("a number", lambda value: _is_number(value)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "null": ("null", lambda value: value is None),
}

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least {}", lambda value, bound: value >= bound),
    "maximum": ("at most {}", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("more than {}", lambda value, bound: value > bound),
    "exclusiveMaximum": ("less than {}", lambda value, bound: value < bound),
    "multipleOf": ("a multiple of {}", lambda value, bound: bound > 0 and value % bound == 0),
}

_SIZES: dict[str, tuple[type, str, Callable[[int, Any], bool]]] = {
    "minLength": (str, "at least {} characters long", lambda size, bound: size >= bound),
    "maxLength": (str, "at most {} characters long", lambda size, bound: size <= bound),
    "minItems": (list, "a list with at least {} items", lambda size, bound: size >= bound),
    "maxItems": (list, "a list with at most {} items", lambda size, bound: size <= bound),
    "minProperties": (dict, "an object with at least {} fields", lambda size, bound: size >= bound),
    "maxProperties": (dict, "an object with at most {} fields", lambda size, bound: size <= bound),
}


def check_value(schema: Mapping[str, Any], value: Any, field: str) -> None:
    """Raise InvalidInput if a value does not match the schema.

    The error names the field within `field`.
    """
    _SchemaChecker(schema).check(schema, value, field, 0)


class _SchemaChecker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._remaining = root, MAX_CHECKS

    def check(self, schema: Any, value: Any, field: str, depth: int) -> None:
        self._remaining -= 1
        if self._remaining < 0 or depth > MAX_DEPTH:
            raise InvalidInput(field, "is too large or too deeply nested to be checked", "Send a smaller value.")
        if schema is False:
            raise InvalidInput(field, "is not allowed here", "Leave it out.")
        if not isinstance(schema, Mapping):
            return
        schema_fields = cast(Mapping[str, Any], schema)
        if "$ref" in schema_fields:
            self.check(resolve_reference(self._root, schema_fields["$ref"]), value, field, depth + 1)
        _check_type(schema_fields, value, field)
        _check_choice(schema_fields, value, field)
        _check_bounds(schema_fields, value, field)
        if isinstance(value, str):
            self._remaining -= PATTERN_COST if "pattern" in schema_fields else 0
            check_text(schema_fields, value, field)
        self._check_combined(schema_fields, value, field, depth)
        if isinstance(value, dict):
            self._check_object(schema_fields, cast(dict[str, Any], value), field, depth)
        if isinstance(value, list):
            self._check_items(schema_fields, cast(list[Any], value), field, depth)

    def _check_object(self, schema: Mapping[str, Any], value: dict[str, Any], field: str, depth: int) -> None:
        named = as_mapping(schema.get("properties"))
        for name in as_sequence(schema.get("required")):
            if name not in value:
                raise InvalidInput(f"{field}.{name}", "is required", self._build_remedy(named.get(name)))
        for name, inner in named.items():
            if name in value:
                self.check(inner, value[name], f"{field}.{name}", depth + 1)
        others = schema.get("additionalProperties", True)
        for name in value.keys() - named.keys():
            if others is False:
                property_names = ", ".join(named) or "none"
                raise InvalidInput(
                    f"{field}.{name}", "is not a field of this object", f"Its fields are: {property_names}."
                )
            self.check(others, value[name], f"{field}.{name}", depth + 1)

    def _check_items(self, schema: Mapping[str, Any], value: list[Any], field: str, depth: int) -> None:
        first = as_sequence(schema.get("prefixItems"))
        for at, item in enumerate(value):
            inner = first[at] if at < len(first) else schema.get("items", True)
            self.check(inner, item, f"{field}[{at}]", depth + 1)
        if schema.get("uniqueItems") is True and len({_render_value(item) for item in value}) < len(value):
            raise InvalidInput(field, "contains the same item twice", "Use each item once.")

    def _check_combined(self, schema: Mapping[str, Any], value: Any, field: str, depth: int) -> None:
        for inner in as_sequence(schema.get("allOf")):
            self.check(inner, value, field, depth + 1)
        for name in ("anyOf", "oneOf"):
            if options := as_sequence(schema.get(name)):
                self._check_options(schema, options, value, field, depth, exactly_one=name == "oneOf")
        if "not" in schema and self._find_problem(schema["not"], value, field, depth) is None:
            raise InvalidInput(field, "is a value that is not allowed", "Use another value.")

    def _check_options(
        self,
        schema: Mapping[str, Any],
        options: Sequence[Any],
        value: Any,
        field: str,
        depth: int,
        *,
        exactly_one: bool,
    ) -> None:
        if (named := self._find_discriminated_option(schema, options, value)) is not None:
            self.check(named, value, field, depth + 1)
            return
        problems = [self._find_problem(option, value, field, depth) for option in options]
        fits = problems.count(None)
        if fits > 1 and exactly_one:
            raise InvalidInput(field, f"fits {fits} of the alternatives", "Use a value that fits exactly one of them.")
        if fits == 0:
            # The deepest error belongs to the alternative that was probably meant.
            raise max((p for p in problems if p), key=lambda problem: len(problem.field))

    def _find_discriminated_option(self, schema: Mapping[str, Any], options: Sequence[Any], value: Any) -> Any:
        """Return the alternative whose constant field has the same value as in `value`.

        `None` means that no constant field distinguishes the alternatives.
        """
        name = as_mapping(schema.get("discriminator")).get("propertyName")
        if not isinstance(name, str) or not isinstance(value, dict):
            return None
        actual = cast(dict[str, Any], value).get(name)
        constants = [as_mapping(self._resolve(option).get("properties")).get(name) for option in options]
        fitting = [at for at, constant in enumerate(constants) if as_mapping(constant).get("const") == actual]
        return options[fitting[0]] if fitting else None

    def _find_problem(self, schema: Any, value: Any, field: str, depth: int) -> InvalidInput | None:
        try:
            self.check(schema, value, field, depth + 1)
        except InvalidInput as error:
            return error
        return None

    def _resolve(self, schema: Any) -> Mapping[str, Any]:
        schema_fields = as_mapping(schema)
        return (
            as_mapping(resolve_reference(self._root, schema_fields["$ref"]))
            if "$ref" in schema_fields
            else schema_fields
        )

    def _build_remedy(self, schema: Any) -> str:
        return _describe_expected(self._resolve(schema))


def resolve_reference(root: Mapping[str, Any], reference: object) -> Any:
    """Return the part of a schema that a reference names.

    Returns `True`, which allows any value, if the reference names nothing.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    node: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        node = as_mapping(node).get(part.replace("~1", "/").replace("~0", "~"), True)
    return node


def _check_type(schema: Mapping[str, Any], value: Any, field: str) -> None:
    kinds = [name for name in _list_type_names(schema) if name in _TYPES]
    if kinds and not any(_TYPES[name][1](value) for name in kinds):
        raise InvalidInput(
            field, f"must be {' or '.join(_TYPES[name][0] for name in kinds)}", _describe_expected(schema)
        )


def _check_choice(schema: Mapping[str, Any], value: Any, field: str) -> None:
    if "const" in schema and not _is_equal(value, schema["const"]):
        raise InvalidInput(field, f"must be {_render_value(schema['const'])}", _describe_expected(schema))
    if "enum" in schema and not any(_is_equal(value, choice) for choice in as_sequence(schema["enum"])):
        raise InvalidInput(field, "is not one of the choices", _describe_expected(schema))


def _check_bounds(schema: Mapping[str, Any], value: Any, field: str) -> None:
    for name, (words, fits) in _BOUNDS.items():
        bound = schema.get(name)
        if _is_number(bound) and _is_number(value) and not fits(value, bound):
            raise InvalidInput(field, f"must be {words.format(bound)}", "Use another number.")
    for name, (kind, words, fits) in _SIZES.items():
        bound = schema.get(name)
        if _is_number(bound) and isinstance(value, kind) and not fits(len(value), bound):
            raise InvalidInput(field, f"must be {words.format(bound)}", "Use another value.")


def _describe_expected(schema: Mapping[str, Any]) -> str:
    """Describe in a sentence which value to send."""
    if choices := as_sequence(schema.get("enum")):
        return f"Use one of: {', '.join(_render_value(choice) for choice in choices[:20])}."
    if "const" in schema:
        return f"Use {_render_value(schema['const'])}."
    kinds = [_TYPES[name][0] for name in _list_type_names(schema) if name in _TYPES]
    required = ", ".join(str(name) for name in as_sequence(schema.get("required"))[:20])
    named = f" with the fields {required}" if required and "an object" in kinds else ""
    return f"Use {' or '.join(kinds)}{named}." if kinds else "Provide a value."


def _list_type_names(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else [name for name in as_sequence(kind) if isinstance(name, str)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. `true` is not equal to `1`, and `1.0` is."""
    if _is_number(one) and _is_number(other):
        return one == other
    if isinstance(one, dict | list):
        return type(one) is type(other) and _render_value(one) == _render_value(other)  # pyright: ignore[reportUnknownArgumentType]
    return type(one) is type(other) and one == other


def _render_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def as_sequence(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, else an empty list."""
    return cast(Sequence[Any], value) if isinstance(value, list | tuple) else ()
