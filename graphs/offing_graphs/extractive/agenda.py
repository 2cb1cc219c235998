"""What can still be done for each part of a question, in order, and how well each part is covered.

Planner and verifier share it, so that one stops exactly when the other has nothing left. Everything is derived from the
recorded memory and passages.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from offing.sdk import shortened
from offing_graphs.extractive.lines import Pool, held_in_paragraph, pool_of
from offing_graphs.extractive.measure import Hit, measure, weights_of
from offing_graphs.extractive.question import compares, key_phrases
from offing_graphs.extractive.sums import expression
from offing_graphs.extractive.words import Term, terms
from offing_graphs.parts.shapes import Card, Coverage, Piece, Record

OTHER_FORMS = "Look again with other forms of"
"""How a sub-goal begins whose query holds words that were made up from others."""
SEARCH, READ, CALCULATE = "search_library", "read_source", "calculate"
SEARCH_WEB, FETCH = "web_search", "fetch_page"

COVERED = 0.56
"""Weight of a part's words that its best passages must hold together."""
COVERED_BY_ONE = 0.5
"""Weight that one sentence must hold with its heading, and one paragraph of the telling words alone."""
KNOWN = 0.65
"""Weight of a part's words that any passage must hold at all."""
OWN_WORDS = 0.2
"""Weight that the sentence must hold itself."""
WORTH_READING = 0.4
"""Score from which the text around a hit is read."""
WIDENED = 2
"""Parts that are looked up a second time in any case."""
READ_RANK = 2
"""Place that the text around a hit counts as having in the search's order."""
PAGES = 3
"""Pages of the web that are read for a part."""
BARREN = 3
"""Turns in a row without a new passage after which looking on is given up."""


_URL = re.compile(r'"url": "(https?://[^"\\\s]+)"')
"""In the JSON of a search's results, which may have been cut short."""


@dataclass(frozen=True, slots=True)
class Move:
    """A step that could be taken."""

    tool: str
    context: str
    """`query: …`, `passage: E3`, `url: …` or `expression: …`, for the executor."""
    sub_goal: str
    why: str
    needed: bool = False
    """It belongs to the least that is done for every part, however well the part is covered."""
    part: str = ""
    """The part of the question that it is for. Empty: the question as a whole."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one part of the question stands."""

    part: str
    hits: tuple[Hit, ...]
    held: float
    """Weight of its words that its best sentences hold together, 0 to 1."""
    missing: tuple[str, ...]
    """Its words that no sentence holds, the weak ones left out."""
    covered: bool
    unsaid: tuple[str, ...] = ()
    """Its telling words that the best paragraphs do not hold in any form."""

    def coverage(self) -> Coverage:
        ids = tuple(dict.fromkeys(h.line.piece.id for h in self.hits[:3])) if self.covered else ()
        said = f"No passage holds: {', '.join(self.missing)}." if self.missing else ""
        gap = "" if self.covered else said or "No sentence holds enough of its words."
        return Coverage(sub_question=self.part, covered=self.covered, evidence=ids, missing=gap)


@dataclass(frozen=True, slots=True)
class Agenda:
    """Where the run stands, and what is left to do."""

    standings: tuple[Standing, ...]
    moves: tuple[Move, ...]
    """In the order in which they should be taken; empty: nothing would help."""

    @property
    def covered(self) -> bool:
        return all(s.covered for s in self.standings)


def agenda(
    question: str, parts: Sequence[str], memory: Sequence[Record], pieces: Sequence[Piece], tools: Sequence[Card]
) -> Agenda:
    """Where the run stands after what was recorded."""
    pool = pool_of(pieces)
    standings = _standings(parts, pool, memory)
    names = {tool.name for tool in tools}
    tried = {(r.tool, r.sub_goal) for r in memory}
    moves = [m for m in _moves(question, standings, pool, memory) if m.tool in names and _key(m) not in tried]
    barren = len(memory) >= BARREN and all(r.fresh == 0 and not r.value for r in memory[-BARREN:])
    return Agenda(standings, tuple(m for m in moves if m.needed or not barren))


def _key(move: Move) -> tuple[str, str]:
    return move.tool, shortened(move.sub_goal, 400)


def standings(
    parts: Sequence[str], wishes: Sequence[str], pieces: Sequence[Piece], memory: Sequence[Record]
) -> tuple[Standing, ...]:
    """How every part stands against these passages."""
    return _standings(asked_for(parts, wishes), pool_of(pieces), memory)


def _standings(parts: Sequence[str], pool: Pool, memory: Sequence[Record]) -> tuple[Standing, ...]:
    """A comparison is covered when what it compares is, also when no passage names both sides."""
    found = tuple(_standing(part, pool, memory) for part in parts)
    sides = all(s.covered for s in found if not compares(s.part))
    return tuple(replace(s, covered=True) if sides and compares(s.part) else s for s in found)


def asked_for(parts: Sequence[str], wishes: Sequence[str]) -> tuple[str, ...]:
    """The question's parts, and what people asked for while the run worked."""
    return tuple(dict.fromkeys((*parts, *(shortened(w, 300) for w in wishes if terms(w)))))


def _standing(part: str, pool: Pool, memory: Sequence[Record]) -> Standing:
    calculated = next((r for r in memory if r.tool == CALCULATE and r.value), None)
    if calculated and expression(part):
        return Standing(part, (), 1.0, (), covered=True)
    hits = measure(part, pool, ranks_for(part, memory))
    weights = weights_of(part, pool)
    best = [h for h in hits[:4] if h.share >= OWN_WORDS]
    held = sum(w * max((pool.held(t, h.line) for h in best), default=0.0) for t, w in weights.items())
    total = sum(weights.values()) or 1.0
    absent = [t for t in weights if not t.weak and not pool.holds(t)]
    known = 1 - sum(weights[t] for t in absent) / total
    together, unsaid = _together(hits[:5], weights, pool)
    enough = held / total >= COVERED and known >= KNOWN and together >= COVERED_BY_ONE
    covered = enough and any(h.with_heading >= COVERED_BY_ONE for h in best)
    return Standing(part, hits, held / total, tuple(t.shown for t in absent), covered, unsaid)


def _together(best: Sequence[Hit], weights: Mapping[Term, float], pool: Pool) -> tuple[float, tuple[str, ...]]:
    """Weight of the telling words that one paragraph holds with its place, 0 to 1, and those that none holds."""
    telling = {t: w for t, w in weights.items() if not t.weak and not pool.names_a_shelf(t)} or dict(weights)
    total = sum(telling.values()) or 1.0
    shares = [sum(w * held_in_paragraph(t, h.line) for t, w in telling.items()) / total for h in best]
    unsaid = [t.shown for t in telling if not any(held_in_paragraph(t, h.line) > 0 for h in best)]
    return max(shares, default=0.0), tuple(unsaid)


def ranks_for(part: str, memory: Sequence[Record]) -> dict[str, float]:
    """Place of each passage in the search that was made for this part. Empty: none was made."""
    ranks: dict[str, float] = {}
    for record in memory:
        if part in record.sub_goal:
            first = 0 if record.tool == SEARCH else READ_RANK
            for place, piece in enumerate(record.evidence, start=first):
                ranks.setdefault(piece, place)
    return ranks


def _moves(question: str, standings: Sequence[Standing], pool: Pool, memory: Sequence[Record]) -> Iterator[Move]:
    sum_asked = expression(question)
    if sum_asked:
        goal = f"Calculate {sum_asked}"
        yield Move(CALCULATE, f"expression: {sum_asked}", goal, "The question asks for a number.", needed=True)
    parts = [s for s in standings if not expression(s.part)]
    for s in parts:
        why = "Nothing has been looked up for this part yet."
        yield Move(SEARCH, f"query: {s.part}", f"Find passages on: {s.part}", why, needed=True, part=s.part)
    for s in parts[:WIDENED]:
        yield from _again(s, _subject(s, pool), "Words that are everywhere hide other passages.", True)
    for s in parts:
        yield from _reading(s, memory)
    for s in parts:
        yield from _on_the_web(s, memory)
    uncovered = [s for s in parts if not s.covered]
    for s in uncovered:
        yield from _again(s, " ".join(key_phrases(s.part)[:2]), "Key phrases may find what the whole sentence missed.")
    for s in uncovered:
        yield from _again(s, _with_feedback(s, pool), "Words of the best passages so far may lead to better ones.")
    for s in uncovered:
        yield from _other_forms(s)
        yield from _again(s, " ".join(_rarest(s, pool)), "Fewer words find more.")


def _reading(s: Standing, memory: Sequence[Record]) -> Iterator[Move]:
    """Once for a part, and not where it has been read on already."""
    read = [r.sub_goal for r in memory if r.tool == READ]
    done = any(s.part in goal or (s.hits and f" {s.hits[0].line.piece.id} " in goal) for goal in read)
    if s.hits and s.hits[0].score >= WORTH_READING and not done:
        piece = s.hits[0].line.piece
        goal = f"Read on around {piece.id} for: {s.part}"
        why = f"{piece.id} fits best; its surroundings may say more."
        yield Move(READ, f"passage: {piece.id}", goal, why, needed=True, part=s.part)


def _on_the_web(s: Standing, memory: Sequence[Record]) -> Iterator[Move]:
    """Where these tools are offered, somebody asked for the web: it is searched and the best page read in any case."""
    goal = f"Search the web for: {s.part}"
    yield Move(SEARCH_WEB, f"query: {s.part}", goal, "The question was asked with the web.", needed=True, part=s.part)
    searched = [r for r in memory if r.tool == SEARCH_WEB and s.part in r.sub_goal]
    urls = dict.fromkeys(url for r in searched for url in _URL.findall(r.value))
    for place, url in enumerate(list(urls)[:PAGES]):
        if place == 0 or not s.covered:
            yield Move(FETCH, f"url: {url}", f"Read {url} for: {s.part}", "A search found it.", place == 0, s.part)


def _again(s: Standing, query: str, why: str, needed: bool = False) -> Iterator[Move]:
    if query and query.lower() != s.part.lower():
        goal = f"Look again with the words {query!r} for: {s.part}"
        yield Move(SEARCH, f"query: {query}", goal, why, needed, s.part)


def _subject(s: Standing, pool: Pool) -> str:
    """The telling words of a part without those that are in most sources. Empty: there are none of either."""
    found = [t for t in terms(s.part) if not t.weak]
    kept = [t for t in found if not pool.is_everywhere(t)]
    return " ".join(t.shown for t in kept) if 0 < len(kept) < len(found) else ""


def _other_forms(s: Standing) -> Iterator[Move]:
    if s.missing:
        goal = f"{OTHER_FORMS} {', '.join(s.missing[:2])} for: {s.part}"
        query = " ".join(map(_family, s.missing[:2]))
        yield Move(SEARCH, f"query: {query}", goal, "These words were in no passage so far.", part=s.part)


def _with_feedback(s: Standing, pool: Pool) -> str:
    """The part's telling words with three that its best sentences share."""
    own = {t.whole for t in terms(s.part)}
    counts: Counter[str] = Counter()
    weight: dict[str, float] = {}
    for hit in s.hits[:5]:
        for term in terms(hit.line.text):
            if term.whole not in own and not term.weak and len(term.shown) > 2:
                counts[term.shown] += 1
                weight[term.shown] = pool.weight(term)
    shared = sorted(counts, key=lambda w: (-counts[w] * weight[w], w))[:3]
    strong = [t.shown for t in terms(s.part) if not t.weak]
    return " ".join([*strong[:4], *shared]) if shared else ""


def _family(word: str) -> str:
    """A word with others that English makes of it; those that do not exist do no harm in a search."""
    if not (word.isascii() and word.isalpha() and word.islower()):
        return word
    root = word.removesuffix("e")
    return " ".join((word, f"{root}ing", f"{word}ment", f"{root}ation", f"{root}er"))


def _rarest(s: Standing, pool: Pool) -> list[str]:
    found = [t for t in terms(s.part) if not t.weak and t.shown not in s.missing]
    return [t.shown for t in sorted(found, key=lambda t: -pool.weight(t))[:2]]
