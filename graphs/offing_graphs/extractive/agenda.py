"""The remaining actions for each part of a question, in order.

Planner and verifier share the agenda, so that the verifier stops exactly when the planner
has no action left. Everything is derived from the recorded memory and passages.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from offing.sdk import shorten_line
from offing_graphs.extractive.arithmetic import find_expression
from offing_graphs.extractive.coverage import PartStatus, assess_coverage
from offing_graphs.extractive.lines import LinePool, build_pool
from offing_graphs.extractive.question import extract_key_phrases
from offing_graphs.extractive.tool_names import CALCULATE, FETCH_PAGE, READ_SOURCE, SEARCH_LIBRARY, SEARCH_WEB
from offing_graphs.extractive.word_forms import extract_terms
from offing_graphs.shared.schemas import MemoryRecord, Plan, RetrievedPassage, ToolCard

OTHER_FORMS_PREFIX = "Look again with other forms of"
"""Prefix of a sub-goal whose query contains derived word forms."""
MIN_READ_SCORE = 0.4
"""Minimum score of a line for reading the text around it."""
MAX_WIDENED_PARTS = 2
"""Number of parts that are always searched a second time."""
MAX_PAGES_PER_PART = 3
"""Maximum number of web pages that are read per part."""
MAX_FRUITLESS_TURNS = 3
"""Number of turns in a row without a new passage after which optional actions are dropped."""


_URL_PATTERN = re.compile(r'"url": "(https?://[^"\\\s]+)"')
"""Matches URLs in the JSON of a search result, which may be truncated."""


@dataclass(frozen=True, slots=True)
class CandidateAction:
    """An action that could be taken next."""

    tool: str
    context: str
    """Input of the executor: `query: …`, `passage: E3`, `url: …` or `expression: …`."""
    sub_goal: str
    why: str
    needed: bool = False
    """Whether the action is taken for every part, regardless of its coverage."""
    part: str = ""
    """The part of the question that the action serves. Empty means the whole question."""

    def to_plan(self) -> Plan:
        return Plan(justification=self.why, context=self.context, sub_goal=self.sub_goal, tool=self.tool)


@dataclass(frozen=True, slots=True)
class Agenda:
    """The coverage of all parts and the remaining actions."""

    part_statuses: tuple[PartStatus, ...]
    actions: tuple[CandidateAction, ...]
    """Actions in the order in which they should be taken. Empty means that no action would help."""

    @property
    def covered_count(self) -> int:
        return sum(s.covered for s in self.part_statuses)

    @property
    def is_covered(self) -> bool:
        return self.covered_count == len(self.part_statuses)

    @property
    def is_complete(self) -> bool:
        """Whether every part is covered and all required actions were taken, or no action is left."""
        return not self.actions or (self.is_covered and not any(action.needed for action in self.actions))

    @property
    def is_answered(self) -> bool:
        """Whether at least one part is covered."""
        return self.covered_count > 0


def build_agenda(
    question: str,
    parts: Sequence[str],
    memory: Sequence[MemoryRecord],
    passages: Sequence[RetrievedPassage],
    tools: Sequence[ToolCard],
) -> Agenda:
    """Build the agenda from the recorded memory and passages."""
    pool = build_pool(passages)
    part_statuses = assess_coverage(parts, pool, memory)
    names = {tool.name for tool in tools}
    tried = {(r.tool, r.sub_goal) for r in memory}
    moves = [
        m
        for m in _iter_actions(question, part_statuses, pool, memory)
        if m.tool in names and _action_key(m) not in tried
    ]
    barren = len(memory) >= MAX_FRUITLESS_TURNS and all(
        r.fresh == 0 and not r.value for r in memory[-MAX_FRUITLESS_TURNS:]
    )
    return Agenda(part_statuses, tuple(m for m in moves if m.needed or not barren))


def _action_key(action: CandidateAction) -> tuple[str, str]:
    return action.tool, shorten_line(action.sub_goal, 400)


def choose_first_action(question: str, tools: Sequence[ToolCard], why: str) -> CandidateAction:
    """Return the action if the agenda has none: a search for the whole question with the first tool."""
    tool = tools[0].name if tools else "none"
    return CandidateAction(tool, f"query: {question}", f"Find passages on: {question}", why)


def _iter_actions(
    question: str, part_statuses: Sequence[PartStatus], pool: LinePool, memory: Sequence[MemoryRecord]
) -> Iterator[CandidateAction]:
    calculation = find_expression(question)
    if calculation:
        goal = f"Calculate {calculation}"
        yield CandidateAction(
            CALCULATE, f"expression: {calculation}", goal, "The question asks for a number.", needed=True
        )
    parts = [s for s in part_statuses if not find_expression(s.part)]
    for s in parts:
        why = "Nothing has been looked up for this part yet."
        yield CandidateAction(
            SEARCH_LIBRARY, f"query: {s.part}", f"Find passages on: {s.part}", why, needed=True, part=s.part
        )
    for s in parts[:MAX_WIDENED_PARTS]:
        yield from _iter_search_actions(
            s, _build_subject_query(s, pool), "Words that are everywhere hide other passages.", True
        )
    for s in parts:
        yield from _iter_read_actions(s, memory)
    for s in parts:
        yield from _iter_web_actions(s, memory)
    uncovered = [s for s in parts if not s.covered]
    for s in uncovered:
        yield from _iter_search_actions(
            s, " ".join(extract_key_phrases(s.part)[:2]), "Key phrases may find what the whole sentence missed."
        )
    for s in uncovered:
        yield from _iter_search_actions(
            s, _build_feedback_query(s, pool), "Words of the best passages so far may lead to better ones."
        )
    for s in uncovered:
        yield from _iter_other_form_actions(s)
        yield from _iter_search_actions(s, " ".join(_find_rarest_words(s, pool)), "Fewer words find more.")


def _iter_read_actions(s: PartStatus, memory: Sequence[MemoryRecord]) -> Iterator[CandidateAction]:
    """Yield an action that reads around the best passage, once per part and passage."""
    read = [r.sub_goal for r in memory if r.tool == READ_SOURCE]
    done = any(s.part in goal or (s.hits and f" {s.hits[0].line.passage.id} " in goal) for goal in read)
    if s.hits and s.hits[0].score >= MIN_READ_SCORE and not done:
        passage = s.hits[0].line.passage
        goal = f"Read on around {passage.id} for: {s.part}"
        why = f"{passage.id} fits best; its surroundings may say more."
        yield CandidateAction(READ_SOURCE, f"passage: {passage.id}", goal, why, needed=True, part=s.part)


def _iter_web_actions(s: PartStatus, memory: Sequence[MemoryRecord]) -> Iterator[CandidateAction]:
    """Yield web searches and page reads.

    The web tools are offered only if the run was started with web access, so the web is always
    searched and the best page is always read.
    """
    goal = f"Search the web for: {s.part}"
    yield CandidateAction(
        SEARCH_WEB, f"query: {s.part}", goal, "The question was asked with the web.", needed=True, part=s.part
    )
    searched = [r for r in memory if r.tool == SEARCH_WEB and s.part in r.sub_goal]
    urls = dict.fromkeys(url for r in searched for url in _URL_PATTERN.findall(r.value))
    for rank, url in enumerate(list(urls)[:MAX_PAGES_PER_PART]):
        if rank == 0 or not s.covered:
            yield CandidateAction(
                FETCH_PAGE, f"url: {url}", f"Read {url} for: {s.part}", "A search found it.", rank == 0, s.part
            )


def _iter_search_actions(s: PartStatus, query: str, why: str, needed: bool = False) -> Iterator[CandidateAction]:
    if query and query.lower() != s.part.lower():
        goal = f"Look again with the words {query!r} for: {s.part}"
        yield CandidateAction(SEARCH_LIBRARY, f"query: {query}", goal, why, needed, s.part)


def _build_subject_query(s: PartStatus, pool: LinePool) -> str:
    """Return the telling words of a part without those that occur in most sources.

    Returns an empty string if one of the two groups is empty.
    """
    telling_terms = [t for t in extract_terms(s.part) if not t.is_weak]
    distinctive_terms = [t for t in telling_terms if not pool.is_common(t)]
    return " ".join(t.text for t in distinctive_terms) if 0 < len(distinctive_terms) < len(telling_terms) else ""


def _iter_other_form_actions(s: PartStatus) -> Iterator[CandidateAction]:
    if s.missing:
        goal = f"{OTHER_FORMS_PREFIX} {', '.join(s.missing[:2])} for: {s.part}"
        query = " ".join(map(_expand_word_family, s.missing[:2]))
        yield CandidateAction(
            SEARCH_LIBRARY, f"query: {query}", goal, "These words were in no passage so far.", part=s.part
        )


def _build_feedback_query(s: PartStatus, pool: LinePool) -> str:
    """Return the telling words of a part with three words that its best sentences share."""
    own = {t.stem for t in extract_terms(s.part)}
    counts: Counter[str] = Counter()
    weight: dict[str, float] = {}
    for hit in s.hits[:5]:
        for term in extract_terms(hit.line.text):
            if term.stem not in own and not term.is_weak and len(term.text) > 2:
                counts[term.text] += 1
                weight[term.text] = pool.weigh(term)
    shared = sorted(counts, key=lambda w: (-counts[w] * weight[w], w))[:3]
    strong = [t.text for t in extract_terms(s.part) if not t.is_weak]
    return " ".join([*strong[:4], *shared]) if shared else ""


def _expand_word_family(word: str) -> str:
    """Return a word with derived English forms. Forms that do not exist do no harm in a search."""
    if not (word.isascii() and word.isalpha() and word.islower()):
        return word
    root = word.removesuffix("e")
    return " ".join((word, f"{root}ing", f"{word}ment", f"{root}ation", f"{root}er"))


def _find_rarest_words(s: PartStatus, pool: LinePool) -> list[str]:
    telling_terms = [t for t in extract_terms(s.part) if not t.is_weak and t.text not in s.missing]
    return [t.text for t in sorted(telling_terms, key=lambda t: -pool.weigh(t))[:2]]
