"""What the documents point to is there."""

import re
from glob import glob
from itertools import product
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT, anchors, documents, links

_CODE_PATH = re.compile(r"`((?:backend|workers|graphs|migrations|frontend|tests|deploy|docs)/[\w./{},*-]+)`")
_NOT_HERE = ("NNNN", ".env")
"""Parts of names that stand for files which a reader makes."""


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    broken: list[str] = []
    for target in links(document.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        known = anchors(file.read_text(encoding="utf-8")) if anchor and file.suffix == ".md" and file.exists() else None
        if not file.exists() or (anchor and anchor not in (known or ())):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    named = [p for p in _CODE_PATH.findall(document.read_text(encoding="utf-8")) if not any(n in p for n in _NOT_HERE)]
    assert [path for path in named if not all(glob(str(ROOT / one)) for one in _expanded(path))] == []


def test_every_design_note_is_in_the_index_and_has_its_code_named() -> None:
    index = links((ROOT / "docs/README.md").read_text(encoding="utf-8"))
    notes = sorted((ROOT / "docs/design").glob("*.md"))
    assert notes
    assert [n.name for n in notes if f"design/{n.name}" not in index] == []
    assert [n.name for n in notes if "\nCode: " not in n.read_text(encoding="utf-8")] == []


def test_design_notes_are_short() -> None:
    lengths = {n.name: len(n.read_text(encoding="utf-8").splitlines()) for n in (ROOT / "docs/design").glob("*.md")}
    assert {name: length for name, length in lengths.items() if not 15 <= length <= 60} == {}


def _expanded(path: str) -> list[str]:
    """`a/{b,c}.py` as both paths."""
    pieces = [p[1:-1].split(",") if p.startswith("{") else [p] for p in re.split(r"(\{[^}]*\})", path)]
    return ["".join(choice) for choice in product(*pieces)]
