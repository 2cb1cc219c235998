"""docs/configuration.md lists every variable that is read, with its default, and no other."""

import re
from pathlib import Path

from pydantic_core import PydanticUndefined

from offing.settings import UNPREFIXED_VARIABLES, Settings
from tests.unit.docs.documents import ROOT, tracked

PAGE = ROOT / "docs/configuration.md"

_NAME = re.compile(r"\b(?:OFFING|OTEL)_[A-Z]+(?:_[A-Z]+)*\b|\b(?:" + "|".join(sorted(UNPREFIXED_VARIABLES)) + r")\b")
_ROW = re.compile(r"^\| `(?P<name>[A-Z_]+(?:<ROLE>)?)` \| (?P<default>[^|]+?) \|", re.MULTILINE)


def documented() -> dict[str, str]:
    """Variables of the page's tables, with what stands as their default."""
    return {row["name"]: row["default"] for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def variable(field: str) -> str:
    return field.upper() if field.upper() in UNPREFIXED_VARIABLES else f"OFFING_{field.upper()}"


def code() -> list[Path]:
    folders = (ROOT / "backend", ROOT / "workers", ROOT / "graphs")
    return [path for path in tracked("*.py") if any(folder in path.parents for folder in folders)]


def test_every_setting_is_documented() -> None:
    assert {variable(name) for name in Settings.model_fields} - documented().keys() == set()


def test_every_variable_that_the_code_names_is_documented() -> None:
    read = {name for path in code() for name in _NAME.findall(path.read_text(encoding="utf-8"))}
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(name for name in read if name not in page) == []


def test_no_document_names_a_variable_that_nothing_reads() -> None:
    read = " ".join(path.read_text(encoding="utf-8") for path in (*code(), ROOT / "deploy/compose.yaml"))
    rendered = {
        name
        for path in (*tracked("*.md"), ROOT / "deploy/example.env")
        for name in _NAME.findall(path.read_text(encoding="utf-8"))
    }
    roles = re.compile(r"OFFING_ENGINE_FOR_[A-Z]+")
    fields = {variable(name) for name in Settings.model_fields}
    unread = {n for n in rendered - fields if not re.search(rf"\b{n}\b", read) and not roles.fullmatch(n)}
    # OFFING_KEY is the reader's own, in the API's first steps; the benchmarks read the other one.
    assert sorted(unread - {"OFFING_KEY", "OFFING_BENCH_COLLECTIONS"}) == []


def test_documented_defaults_are_the_real_ones() -> None:
    rendered = documented()
    wrong = {
        name: (rendered[variable(name)], field.default)
        for name, field in Settings.model_fields.items()
        if field.default is not PydanticUndefined and rendered[variable(name)] != _render_default(field.default)
    }
    assert wrong == {}


def _render_default(default: object) -> str:
    return "none" if default in (None, "") else f"`{default}`"
