"""Write questions about the documents of `make demo`: a dataset to train on, and one about held-out documents.

usage: .venv/bin/python deploy/write_document_questions.py [DOCUMENTS] [FOLDER]

Each question asks about a section of a document. Its reference evidence is the first paragraph of plain text there. A
quarter of the documents is held out: no question to train on is about them, while every document can be searched.
"""

import json
import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

TRAIN, HELD_OUT = "demo-train", "demo-heldout"
QUESTIONS_PER_DOCUMENT = 12
HELD_OUT_SHARE = 4
"""One of this many documents is held out."""
MIN_CHARS, MAX_CHARS = 60, 1_200
"""Length of a paragraph that can be evidence."""
MAX_PARAGRAPHS = 4
"""Number of paragraphs of a section of which one can be evidence."""

_HEADING = re.compile(r"^#{2,4}\s+(.+?)\s*$", re.MULTILINE)
_ANCHOR = re.compile(r"<[^>]*>")
_PLAIN = re.compile(r"[^*\[\]<>|#]+")
_WORDS = re.compile(r"[A-Za-z][\w.\-() ]{3,60}")


def list_sections(text: str) -> list[tuple[str, str]]:
    """Return the headings whose section begins with a paragraph of plain text, each with this paragraph."""
    parts = _HEADING.split(text)
    sections = list[tuple[str, str]]()
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        title = _ANCHOR.sub("", heading).replace("`", "").strip()
        paragraphs = (" ".join(part.split()) for part in body.strip().split("\n\n")[:MAX_PARAGRAPHS])
        plain = [one for one in paragraphs if _PLAIN.fullmatch(one) and MIN_CHARS <= len(one) <= MAX_CHARS]
        if plain and _WORDS.fullmatch(title):
            sections.append((title, plain[0]))
    return sections


def build_tasks(name: str, text: str) -> list[dict[str, Any]]:
    """Return the tasks about one document."""
    subject = Path(name).stem.replace("-", " ")
    return [
        {
            "question": f"What does the documentation of {subject} say about {heading} and what is it for?",
            "evidence": [{"quote": paragraph}],
            "name": f"{name}#{number}",
            "scope": {"collections": [TRAIN]},
        }
        for number, (heading, paragraph) in enumerate(list_sections(text)[:QUESTIONS_PER_DOCUMENT], 1)
    ]


def is_held_out(name: str) -> bool:
    return int(sha256(name.encode()).hexdigest(), 16) % HELD_OUT_SHARE == 0


def write_lines(file: Path, tasks: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")


def write_questions(documents: Path, folder: Path) -> tuple[int, int]:
    """Write both datasets. Returns the number of questions to train on and of held-out ones."""
    tasks: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    names = sorted(file.relative_to(documents).as_posix() for file in documents.rglob("*.md"))
    for name in names:
        tasks[is_held_out(name)] += build_tasks(name, (documents / name).read_text(encoding="utf-8"))
    train = folder / TRAIN
    shutil.rmtree(train, ignore_errors=True)
    for name in names:
        (train / "documents" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(documents / name, train / "documents" / name)
    (train / "dataset.toml").write_text(f'name = "{TRAIN}"\n', encoding="utf-8")
    write_lines(train / "questions.jsonl", tasks[False])
    write_lines(folder / f"{HELD_OUT}.jsonl", tasks[True])
    return len(tasks[False]), len(tasks[True])


def main() -> None:
    root = Path(__file__).resolve().parent.parent / ".demo"
    folders = [Path(text) for text in sys.argv[1:3]]
    documents, folder = [*folders, *(root / "docs", root / "questions")[len(folders) :]]
    trained, held_out = write_questions(documents, folder)
    print(f"{trained} questions to train on and {held_out} about held-out documents in {folder}")


if __name__ == "__main__":
    main()
