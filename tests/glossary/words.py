"""Check that no word that docs/glossary.md rules out stands in code or docs: `python -m tests.glossary.words`.

Prints each place and exits with 1 if there are any. `make check` runs it. Imports are not checked, because their names
belong to the library. A place that keeps a word for another reason is listed in ALLOWED.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAMPLE_REPORTS = ("docs/results/reports/pepsico-quarters.md", "docs/results/reports/undici-methods.md")
"""Reports in the words of a model and of documents."""
SELF = "tests/glossary/"

NAMES = {
    r"(?:MOST|LONGEST|LARGEST|DEEPEST|BIGGEST)": "MAX_",
    r"(?:LEAST|FEWEST|SMALLEST|SHORTEST)": "MIN_",
    r"(?:[Dd]oorkeeper|[Tt]oolbelt|[Nn]udges?|[Ss]eats?|[Ww]ish(?:es)?|[Hh]urried|[Ff]ates?)": "the terms of section 2",
    r"(?:[Ss]tretch(?:es)?|[Aa]rtefacts?|[Rr]ecollection|[Rr]ehears(?:e|al|ed)|[Ss]alvaged?)": "the terms of section 2",
    r"(?:[Oo]ptimiser|[Bb]ehaviour|[Rr]egularis(?:e|er|ers|ation)|[Nn]ormalise[dr]?|[Cc]atalogue|[Uu]nauthorised)": (
        "American spelling"
    ),
    r"(?:[Hh]orizon)": "step minimap",
    r"(?:utils|helpers?|manager)": "a name that says what it is",
}
"""Parts of identifiers, between underscores or capitals, and what to write instead."""

WHOLE_NAMES = {
    r"told|said|asked|wanted|found|given|kept|made|placed|judged|lost|gone|shown|woken|nudged": "a noun for the value",
    r"refused|refusal|strangers?|hints?|fracture|doors?|portions?": "the terms of section 2",
}
"""Complete identifiers, without underscores at both ends, and what to write instead. A name that the file imports
is a library's, an attribute of that name is not.
"""

PROSE = {
    r"whoever|whatever it is|what (?:came|becomes) of (?:it|them)|of (?:its|their) own accord": "the noun",
    r"[Tt]he only home of|[Kk]nows no\b|none of ours": "nothing: leave it out",
    r"told to write|asked to write": "finish requested",
    r"hand(?:s|ed)? back|let(?:s)? go of": "release",
    r"takes? over|took over|gives? way|lets? go|tak(?:en|es?) up": "claim, be replaced, release, consume",
    r"set aside": "reserved",
    r"strangers?": "third party, another user",
    r"mend(?:s|ed)?|portions?|in any case": "fix, chunk, always",
    r"canceled|canceling": "cancelled, as the stored status",
    r"doorkeeper|toolbelt|nudges?|artefacts?|stretch(?:es)?": "the terms of section 2",
    r"behaviours?|optimis(?:e|er|ers|ed|es)|regularis(?:e|er|ers|ed)|normalis(?:e|ed|es)|catalogue|colour|favour": (
        "American spelling"
    ),
    r"(?:requests|times|runs|steps|bytes|tokens|calls|once|MB|GB) a (?:minute|second|process|core|turn|run|day)": "per",
    r"so many|so long as|as many as (?:wanted|are wanted)": "the number, or the name of the parameter",
    r"stands? on|leans? on|made[ -]up|other people's tools|somebody else": "the noun or verb of docs/glossary.md",
    r"as (?:it is|they are)(?=[.,;])": "unchanged",
}

ALLOWED: dict[tuple[str, str], str] = {
    ("backend/offing/protocols/langgraph/a2a_messages.py", "canceled"): "a state of A2A's tasks",
    ("tests/protocols/langgraph/test_a2a.py", "canceled"): "a state of A2A's tasks",
    ("", "at_most_once"): "the term for such side effects",
    ("graphs/offing_graphs/agentflow/prompts.py", "stands on"): "a prompt, which recorded rollouts contain",
    ("graphs/offing_graphs/shared/text_reports.py", "stands on"): "a prompt, which recorded rollouts contain",
    ("graphs/offing_world/", "made-up"): "an answer of a rule-based role, which recorded rollouts contain",
    ("tests/e2e/conftest.py", "stands on"): "a lighthouse",
    ("graphs/offing_graphs/memact/", "found"): "a field of a model's output, which recorded rollouts contain",
    ("tests/graphs/memact/", "found"): "a field of a model's output, which recorded rollouts contain",
    ("graphs/offing_world/memact/", "found"): "a field of a model's output, which recorded rollouts contain",
    ("tests/bench/questions.toml", "take over"): "a question of a user, whose results were measured",
    ("tests/graphs/langgraph_only/durable_side_effect.py", "kept"): "the name of a durable call, which traces contain",
    ("tests/bench/trainer.py", "utils"): "torch.nn.utils",
    ("tests/peers/research.py", "utils"): "a module of open_deep_research",
    ("workers/offing_trainer/learner/optimizer.py", "utils"): "torch.nn.utils",
    ("backend/offing/langchain/chat.py", "run_manager"): "LangChain's parameter",
    ("backend/offing/langchain/own_models.py", "run_manager"): "LangChain's parameter",
    ("backend/offing/tools/", "stretch"): "a tool's description, which recorded prompts contain",
    ("graphs/offing_graphs/shared/judge.py", "set aside"): "a prompt, which recorded rollouts contain",
    ("backend/offing/core/step_texts.py", "set aside"): "the text of recorded steps",
    ("graphs/offing_world/", "whoever"): "a document of the synthetic world",
    ("migrations/0002_runs.sql", "runs a run"): "the noun",
}
"""(path or its beginning, word or whole name in lower case): why it stays there."""


@dataclass(frozen=True)
class Place:
    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}; write: {self.instead}"


def places_in_python(path: str, text: str) -> Iterator[Place]:
    """Yield forbidden parts of identifiers, and forbidden words of strings and comments."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    import_lines = {line for node in imports for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_attribute, previous = previous == ".", token.string
        is_imported = token.type == tokenize.NAME and token.string in imported and not is_attribute
        if is_imported or token.start[0] in import_lines:
            continue
        if token.type == tokenize.NAME:
            yield from _places_in_name(path, token.start[0], token.string)
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from _places_in_prose(path, token.start[0], token.string)


def _places_in_name(path: str, line: int, name: str) -> Iterator[Place]:
    if is_allowed(path, name):
        return
    yield from (
        Place(path, line, name, instead)
        for pattern, instead in WHOLE_NAMES.items()
        if re.fullmatch(pattern, name.strip("_"))
    )
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    for pattern, instead in NAMES.items():
        for part in parts:
            if re.fullmatch(pattern, part) and not is_allowed(path, part):
                yield Place(path, line, name, instead)


def _places_in_prose(path: str, first_line: int, text: str) -> Iterator[Place]:
    for offset, line in enumerate(text.splitlines()):
        for pattern, instead in PROSE.items():
            for match in re.finditer(rf"\b(?:{pattern})\b", line):
                if not is_allowed(path, match[0]):
                    yield Place(path, first_line + offset, match[0], instead)


def is_allowed(path: str, word: str) -> bool:
    return any(path.startswith(start) and word.lower() == allowed for start, allowed in ALLOWED)


def find_places(root: Path = ROOT) -> Iterator[Place]:
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    for path in listed.splitlines():
        if path.startswith((SELF, "docs/glossary.md", "tests/traces/recorded", "docs/images", *SAMPLE_REPORTS)):
            continue
        if path.endswith(".py"):
            yield from places_in_python(path, (root / path).read_text())
        elif path.endswith((".md", ".ts", ".tsx", ".sql", ".toml")):
            yield from _places_in_prose(path, 1, (root / path).read_text())


def main() -> int:
    found = list(find_places())
    for place in found:
        print(place)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
