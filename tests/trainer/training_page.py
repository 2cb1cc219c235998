"""The tables of docs/training.md, made from the catalogue and the recipes.

    .venv/bin/python -m tests.trainer.training_page

writes them into the page again; a test compares.
"""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from offing_trainer.catalogue import built_in
from offing_trainer.config import ChainConfig, recipe, recipe_names
from offing_trainer.seam import Plugin, Seam

PAGE = Path(__file__).parents[2] / "docs/training.md"


def written(page: str) -> str:
    """The page with its tables as they are now."""
    return _filled(_filled(page, "recipes", recipes()), "plug-ins", plugins())


def _filled(page: str, name: str, rows: list[str]) -> str:
    """The page with these rows between the marks of that name."""
    begin, end = f"<!-- {name}: made -->", f"<!-- {name}: end -->"
    before, _, rest = page.partition(begin)
    return "\n".join([before + begin, "", *rows, "", end]) + rest.partition(end)[2]


def recipes() -> list[str]:
    rows = [(f"`{name}`", *_of_recipe(recipe(name)["chain"])) for name in recipe_names()]
    return _table(("recipe", "rewards", "selections", "advantage", "weights", "surrogate", "regularisers"), rows)


def _of_recipe(chain: Mapping[str, Any]) -> tuple[str, ...]:
    asked = ChainConfig.model_validate(chain)
    seams = (asked.reward, asked.select, (*asked.advantage, *asked.modifiers), asked.weight, asked.surrogate)
    named = [" · ".join(one.name for one in seam) or "-" for seam in seams]
    return (*named, " · ".join(f"{term.coefficient:g} {term.name}" for term in asked.regularise) or "-")


def plugins() -> list[str]:
    rows = [
        (_seam(p), f"`{p.name}`", _options(p), _needs(p), p.source.replace("|", "\\|"))
        for seam in Seam
        for p in built_in()
        if p.seam is seam
    ]
    return _table(("seam", "plug-in", "options", "needs", "source"), rows)


def _seam(plugin: Plugin) -> str:
    return f"{plugin.seam}, {plugin.stage}" if plugin.stage else str(plugin.seam)


def _options(plugin: Plugin) -> str:
    fields = plugin.options.model_fields.items()
    return ", ".join(f"`{name}` {_default(field)}" for name, field in fields) or "-"


def _default(field: FieldInfo) -> str:
    """The default, and in brackets what else it may be where that is a short list."""
    others = [_shown(value) for value in _values(field.annotation) if value != field.default]
    return _shown(field.default) + (f" ({', '.join(others)})" if others else "")


def _values(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()


def _shown(value: Any) -> str:
    if value is None or value == () or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " + ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)


def _needs(plugin: Plugin) -> str:
    """Columns, with default options."""
    more = plugin.also_needs(plugin.options()) if plugin.also_needs else frozenset[str]()
    return ", ".join(f"`{name}`" for name in sorted(plugin.needs | more)) or "-"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
