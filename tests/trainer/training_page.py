"""The tables of docs/training.md, made from the registry and the recipes.

    .venv/bin/python -m tests.trainer.training_page

writes them into the page again; a test compares.
"""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from offing_trainer.config import PipelineConfig, list_recipes, load_recipe
from offing_trainer.plugin import Plugin, PluginKind
from offing_trainer.plugin_registry import PLUGINS

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
    rows = [(f"`{name}`", *_of_recipe(load_recipe(name)["pipeline"])) for name in list_recipes()]
    return _table(("recipe", "rewards", "selectors", "advantage", "token weights", "surrogate", "regularizers"), rows)


def _of_recipe(pipeline: Mapping[str, Any]) -> tuple[str, ...]:
    config = PipelineConfig.model_validate(pipeline)
    seams = (
        config.rewards,
        config.selectors,
        (*config.advantage, *config.advantage_modifiers),
        config.token_weights,
        config.surrogate,
    )
    named = [" · ".join(one.name for one in seam) or "-" for seam in seams]
    return (*named, " · ".join(f"{term.coefficient:g} {term.name}" for term in config.regularizers) or "-")


def plugins() -> list[str]:
    rows = [
        (_plugin_kind(p), f"`{p.name}`", _options(p), _needs(p), p.source.replace("|", "\\|"))
        for seam in PluginKind
        for p in PLUGINS.values()
        if p.kind is seam
    ]
    return _table(("kind", "plug-in", "options", "needs", "source"), rows)


def _plugin_kind(plugin: Plugin) -> str:
    return f"{plugin.kind}, {plugin.stage}" if plugin.stage else str(plugin.kind)


def _options(plugin: Plugin) -> str:
    fields = plugin.options.model_fields.items()
    return ", ".join(f"`{name}` {_default(field)}" for name, field in fields) or "-"


def _default(field: FieldInfo) -> str:
    """The default, and in brackets what else it may be where that is a short list."""
    others = [_render_value(value) for value in _values(field.annotation) if value != field.default]
    return _render_value(field.default) + (f" ({', '.join(others)})" if others else "")


def _values(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()


def _render_value(value: Any) -> str:
    if value is None or value == () or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " + ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)


def _needs(plugin: Plugin) -> str:
    """Columns, with default options."""
    more = plugin.needs_for_options(plugin.options()) if plugin.needs_for_options else frozenset[str]()
    return ", ".join(f"`{name}`" for name in sorted(plugin.needs | more)) or "-"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
