"""Which sentences of which passages fit a question, and how well: the model-free roles' only measure.

A sentence is measured by the words that it shares with the question, with help from the heading and title that it
stands under, from its neighbours, and from the search's own order. Knows neither turns nor reports.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import cast

from offing_graphs.agentflow.extractive_split import Kind, Unit, is_header, linked_share, plain, units
from offing_graphs.agentflow.extractive_words import Stems, Term, sequence, stems, terms, with_kin
from offing_graphs.agentflow.shapes import Piece

UNDER_HEADING = 0.75
"""What a word counts that stands in the heading and not in the sentence."""
IN_TITLE = 0.6
"""The same for the source's title."""
NEARBY = 0.4
"""The same for the neighbours."""
IN_SOURCE = 0.3
"""The same for any other retrieved passage of the source."""
COMMON = 3
"""Sources from which on a word of all of them is common."""
NEIGHBOURS = 3
"""Units before and after a line that are its neighbours."""
SCOPE = 0.6
"""Factor for a word that says where to look, such as a product's name in brackets."""
WEAK = 0.3
"""Weight of a word that says little."""
LEAST_POOL = 40
"""Sentences that a pool counts as having at least, so that few passages do not make every word common."""
LONGEST_QUOTE = 420
"""Code points of a quote; longer sentences are cut at a clause."""
WINDOW = 1_500
"""Code points from which a passage is a window that may begin and end in mid-sentence."""

_DANGLING = re.compile(
    r"(?:this|that|these|those|it|they|he|she|such|its|their|here|however|also|otherwise|therefore|then|both)\b", re.I
)
_ABOUT = re.compile(
    r"(?:what (?:is|are)|how (?:do|does)|explain|describe)\b|"
    r"[\w.-]+(?:\s[\w.-]+)?(?:\s(?:in|of|for|with)\s[\w.-]+|\s\([\w.-]+\))?$",
    re.IGNORECASE,
)
_SCOPE = re.compile(r"(?:\bin |\()([\w.-]+)\)?[?.]?$", re.IGNORECASE)
_HEADING_WORDS = stems(
    "about api basic basics chapter class command event function guide interface introduction method module new object "
    "option options overview page parameter parameters property reference section the type what how"
).words
_ENDINGS = frozenset(".!?:;)\u3002\uff01\uff1f")
_LISTING = re.compile(r"(?:list|enumerate|name|which|what are|what \w+s (?:are|does|do|can))\b", re.IGNORECASE)
_POINTING = re.compile(
    r"(?:see|refer to|for (?:more|further|full|additional)|read|check out|learn more)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[;:,.)\u2014](?=\s)")


@dataclass(frozen=True, slots=True)
class Line:
    """A unit of a passage, ready to be measured."""

    piece: Piece
    unit: Unit
    text: str
    """As a reader sees it."""
    stems: Stems
    order: tuple[str, ...]
    heading: Stems
    title: Stems
    around: Stems
    leads: bool
    """It is the first prose under its heading."""
    follows: bool
    """Another sentence of the same paragraph stands before it."""

    @property
    def span(self) -> tuple[str, int, int]:
        return self.piece.artefact, self.piece.start + self.unit.start, self.piece.start + self.unit.end


@dataclass(frozen=True, slots=True)
class Hit:
    """A line with what it is worth for one question."""

    line: Line
    score: float
    """0 to about 1.3; 1: it holds every word of the question."""
    share: float
    """Weight of the question's words that it holds itself, 0 to 1."""
    with_heading: float
    """The same with the heading and title it stands under."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All lines of some passages, each stretch of text once, with how common each word is among them."""

    lines: tuple[Line, ...]
    counts: Counter[str] = field(default_factory=Counter[str])
    sources: Mapping[str, Stems] = field(default_factory=dict[str, Stems])
    """All that is known of each source, by its text."""
    common: frozenset[str] = frozenset()
    """Words of at least so many sources that they say where one is, not what it says."""
    vocabulary: frozenset[str] = frozenset()
    """Every word of lines, headings and titles."""

    def weight(self, term: Term) -> float:
        """1 for a word that no line holds, down to about 0.7 for one that is in most of them.

        Flat on purpose: passages were chosen for the question's words, so that a common word among them is no idle one.
        """
        total = max(len(self.lines), LEAST_POOL)
        held = self.counts[term.whole] or (min(self.counts[p] for p in term.parts) if term.parts else 0)
        rarity = math.log(1 + (total - held + 0.5) / (held + 0.5)) / math.log(2 + 2 * total)
        return (0.7 + 0.3 * rarity) * (WEAK if term.weak else 1.0)

    def held(self, term: Term, line: Line) -> float:
        """How far a line holds a term, itself, through its heading and title, or as a common word of its source."""
        common = Stems(self.sources.get(line.piece.artefact, Stems()).words & self.common)
        return max(held_with_place(term, line), 0.5 * term.within(common))

    def holds(self, term: Term) -> bool:
        """Some line, heading or title holds at least half of the term."""
        return any(held_with_place(term, line) >= 0.5 for line in self.lines)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, ready to measure lines by."""

    about: bool
    """It asks what something is or how it works, which the passage under its name says."""
    weights: Mapping[Term, float]
    total: float
    pairs: frozenset[tuple[str, str]]
    joined: frozenset[str]
    """Neighbouring words written as one, as an identifier would have them."""
    wants: re.Pattern[str] | None
    lists: bool
    """It asks for several things, which lists and tables hold."""
    ranks: Mapping[str, float]
    pool: Pool


def pool_of(pieces: Iterable[Piece]) -> Pool:
    """The lines of these passages; where passages overlap, a line counts once."""
    lines: list[Line] = []
    seen: dict[str, list[tuple[int, int]]] = {}
    for piece in pieces:
        known = seen.setdefault(piece.artefact, [])
        for line in _lines_of(piece):
            _, start, end = line.span
            if not any(s <= start and end <= e for s, e in known):  # a window repeats lines, the first perhaps in part
                known.append((start, end))
                lines.append(line)
    counts = Counter(stem for line in lines for stem in (*line.stems.words, *line.stems.parts))
    sources = {artefact: _joined([line.stems for line in group]) for artefact, group in _by_source(lines).items()}
    held = Counter(word for source in sources.values() for word in source.words)
    common = frozenset(word for word, count in held.items() if count >= COMMON)
    places = (words for line in lines for words in (line.stems.words, line.heading.words, line.title.words))
    return Pool(tuple(lines), counts, sources, common, frozenset[str]().union(*places))


def _by_source(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.piece.artefact, []).append(line)
    return found


def _read(piece: Piece) -> tuple[Line, ...]:
    heading, title = stems(piece.heading), stems(piece.title)
    all_units = units(piece.text)
    seen = [stems(plain(piece.text[u.start : u.end])) for u in all_units]
    found: list[Line] = []
    leads = not piece.heading or piece.start == 0
    columns = Stems()
    for n, unit in enumerate(all_units):
        stretch = piece.text[unit.start : unit.end]
        columns = columns if unit.kind is Kind.ROW else Stems()
        if unit.kind is Kind.HEADING:
            heading, leads = stems(plain(stretch)), True
        elif unit.kind is Kind.ROW and is_header(piece.text, unit):
            columns = seen[n]
        elif not _is_torn(piece, unit):
            text = stretch if unit.kind is Kind.CODE else plain(stretch)
            around = _joined(seen[max(0, n - NEIGHBOURS) : n + NEIGHBOURS + 1])
            follows = n > 0 and all_units[n - 1].block == unit.block
            under = _joined((heading, columns)) if columns else heading
            found.append(Line(piece, unit, text, seen[n], sequence(text), under, title, around, leads, follows))
            leads = leads and unit.kind is Kind.CODE
    return tuple(found)


_lines_of = cast("Callable[[Piece], tuple[Line, ...]]", lru_cache(maxsize=2_048)(_read))


def _is_torn(piece: Piece, unit: Unit) -> bool:
    """A window may end in the middle of its last sentence."""
    if len(piece.text) < WINDOW or unit.end < len(piece.text.rstrip()) - 1:
        return False
    return not piece.text.rstrip().endswith((".", "!", "?", "|", "`", ")", "*"))


def _joined(several: Sequence[Stems]) -> Stems:
    return Stems(
        frozenset[str]().union(*(s.words for s in several)), frozenset[str]().union(*(s.parts for s in several))
    )


def measure(question: str, pool: Pool, ranks: Mapping[str, float] | None = None) -> tuple[Hit, ...]:
    """Lines that share a word with the question, best first. `ranks`: place of a passage in the search's own order."""
    asked = _asked(question, pool, ranks or {})
    hits = [hit for line in pool.lines if line.unit.kind is not Kind.CODE and (hit := _hit(line, asked))]
    return tuple(sorted(hits, key=lambda h: (-h.score, h.line.span[0], h.line.span[1])))


def weights_of(question: str, pool: Pool) -> dict[Term, float]:
    """What each word of a question counts."""
    scope = stems(" ".join(_SCOPE.findall(question))).words
    asked = (with_kin(t, pool.vocabulary) for t in terms(question))
    return {t: pool.weight(t) * (SCOPE if t.whole in scope else 1.0) for t in asked}


def _asked(question: str, pool: Pool, ranks: Mapping[str, float]) -> Asked:
    weights = weights_of(question, pool)
    order = sequence(question)
    pairs = frozenset(pairwise(order))
    words = [term.shown.replace("-", "").replace("_", "") for term in weights]
    joined = frozenset(stem for a, b in pairwise(words) for stem in stems(a + b).words)
    return Asked(
        about=bool(_ABOUT.match(question)),
        weights=weights,
        total=sum(weights.values()) or 1.0,
        pairs=pairs,
        joined=joined,
        wants=_wants(question),
        lists=asks_for_list(question),
        ranks=ranks,
        pool=pool,
    )


def _hit(line: Line, asked: Asked) -> Hit | None:
    own = sum(weight * term.within(line.stems) for term, weight in asked.weights.items())
    if own == 0:
        return None
    headed = sum(w * asked.pool.held(t, line) for t, w in asked.weights.items())
    if asked.about and line.leads and _is_about(line, asked) == 1:
        own = max(own, 0.85 * headed)  # under its own name a thing is explained without it
    source = asked.pool.sources.get(line.piece.artefact, Stems())
    context = sum(w * _in_context(t, line, source) for t, w in asked.weights.items())
    score = (0.6 * own + 0.4 * context) / asked.total + _bonus(line, asked)
    elsewhere = sum(w * (1 - max(t.within(source), asked.pool.held(t, line))) for t, w in asked.weights.items())
    score *= 1 - 0.35 * elsewhere / asked.total  # its whole source never speaks of a part of what was asked
    if asked.about and _is_about(line, asked) == 0:
        score *= 0.9
    return Hit(line, score * _readable(line), own / asked.total, headed / asked.total)


def _bonus(line: Line, asked: Asked) -> float:
    """For words together as asked, for the kind of answer that is wanted, for headings, for the search's order."""
    together = len(asked.pairs & set(pairwise(line.order))) / max(len(asked.pairs), 1)
    bonus = 0.1 * together
    if asked.about and line.leads and _is_about(line, asked) == 1:
        bonus += 0.12
    if asked.joined & line.stems.words:
        bonus += 0.08
        if asked.joined & stems(" ".join(line.text.split()[:2])).words:
            bonus += 0.08
    if asked.lists and line.unit.kind in {Kind.ITEM, Kind.ROW}:
        bonus += 0.06
    if asked.wants and asked.wants.search(line.text):
        bonus += 0.06
    if line.piece.id in asked.ranks:
        bonus += 0.16 / (1 + 0.5 * asked.ranks[line.piece.id])
    return bonus + (0.2 if line.leads else 0.1) * _is_about(line, asked)


def _is_about(line: Line, asked: Asked) -> float:
    """How much of the heading, without its little words, was asked for; 0 to 1."""
    words = (line.heading.words or line.title.words) - _HEADING_WORDS
    held = sum(any(t.whole == w or w in t.parts for t in asked.weights if not t.weak) for w in words)
    return held / len(words) if words else 0.0


def held_with_place(term: Term, line: Line) -> float:
    """How far a line holds a term, itself or through its heading and title."""
    return max(term.within(line.stems), term.within(line.heading), term.within(line.title))


def _in_context(term: Term, line: Line, source: Stems) -> float:
    return max(
        IN_SOURCE * term.within(source),
        term.within(line.stems),
        UNDER_HEADING * term.within(line.heading),
        IN_TITLE * term.within(line.title),
        NEARBY * term.within(line.around),
    )


def _readable(line: Line) -> float:
    """How well a line stands alone, as a factor."""
    text = line.text
    words = len(text.split())
    factor = 0.55 if words < 5 else 0.85 if len(text) > LONGEST_QUOTE else 1.0
    if 5 <= words < 9 and line.unit.kind is Kind.PROSE and text[-1:] not in _ENDINGS:
        factor *= 0.75
    if text.endswith("?"):
        factor *= 0.6
    if text.endswith(":"):
        factor *= 0.88
    if text[:1].islower() and line.unit.kind is Kind.PROSE:
        factor *= 0.85
    if words >= 9 and text[-1:] not in _ENDINGS and line.unit.end >= len(line.piece.text.rstrip()):
        factor *= 0.75
    if _POINTING.match(text):
        factor *= 0.6
    if is_dangling(text):
        factor *= 0.9 if line.follows else 0.75
    if linked_share(line.piece.text[line.unit.start : line.unit.end]) > 0.6:
        factor *= 0.35
    return factor


def is_dangling(text: str) -> bool:
    """It begins with a word that leans on the sentence before."""
    return bool(_DANGLING.match(text))


_WANTED: tuple[tuple[str, str], ...] = (
    (r"\bwhy\b|\breasons?\b", r"\b(?:because|since|so that|in order to|due to|reason|avoid|prevent|therefore)\b"),
    (r"\bwhen\b|\bwhat year\b|\bsince\b", r"\b(?:when|before|after|once|until|if|since|\d{4}|v?\d+\.\d+)\b"),
    (
        r"\bhow (?:many|much|long|large|often|big|fast)\b|\bdefaults?\b|\blimit\b|\btimeout\b",
        r"\d|\bdefault\b|\bnone\b|\bnull\b",
    ),
    (
        r"\bhow\b",
        r"\b(?:by|use|using|call|set|pass|create|register|add|must|should|can be|via|through|to \w+)\b",
    ),
    (r"\bwhat (?:is|are)\b|\bdefine\b|\bmeaning\b", r"\b(?:is|are|means?|refers? to|represents?|provides?|called)\b"),
    (r"\bwho\b", r"\b(?:by|author|maintain|team|lead|founder)"),
    (
        r"\b(?:difference|differ|versus|vs|compare[ds]?)\b",
        r"\b(?:unlike|whereas|while|instead|than|but|however|only|both)\b",
    ),
    (r"^(?:is|are|does|do|can|should|will|must)\b", r"\b(?:not|never|only|always|must|can|cannot|does|supports?)\b"),
)
"""What a question of a kind is often answered with."""


def asks_for_list(question: str) -> bool:
    """It asks for several things."""
    return bool(_LISTING.match(question))


def _wants(question: str) -> re.Pattern[str] | None:
    lowered = question.lower().strip()
    answer = next((answer for asked, answer in _WANTED if re.search(asked, lowered)), None)
    return re.compile(answer, re.IGNORECASE) if answer else None


def distinct(hits: Sequence[Hit], most: int, least_score: float, sameness: float = 0.6) -> tuple[Hit, ...]:
    """The best hits that say different things: each is weighed against what it repeats of those before it."""
    chosen: list[Hit] = []
    candidates = [h for h in hits[: most * 8] if h.score >= least_score]
    while candidates and len(chosen) < most:
        best = max(candidates, key=lambda h: h.score - 0.35 * _most_alike(h, chosen))
        candidates.remove(best)
        if _most_alike(best, chosen) < sameness:
            chosen.append(best)
    return tuple(chosen)


def _most_alike(hit: Hit, chosen: Sequence[Hit]) -> float:
    return max((_alike(hit.line.stems.words, other.line.stems.words) for other in chosen), default=0.0)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def telling_sentence(text: str, goal: str) -> str:
    """The sentence of a passage that shares most with a goal; its beginning, where none shares anything."""
    asked = terms(goal)
    lines = [plain(text[u.start : u.end]) for u in units(text) if u.kind not in {Kind.HEADING, Kind.CODE}]
    if not lines:
        return plain(text[:LONGEST_QUOTE])
    return max(lines, key=lambda line: sum(t.within(stems(line)) for t in asked) / (4 + len(line.split())) ** 0.3)


def most_relevant(questions: Sequence[str], pieces: Sequence[Piece], limit: int) -> tuple[Piece, ...]:
    """Passages that fit these questions best within a number of code points, in the order in which they were found."""
    pool = pool_of(pieces)
    best: dict[str, float] = {}
    for question in questions:
        for hit in measure(question, pool):
            best[hit.line.piece.id] = max(best.get(hit.line.piece.id, 0.0), hit.score)
    kept: set[str] = set()
    for piece in sorted(pieces, key=lambda p: -best.get(p.id, 0.0)):
        if len(piece.text) <= limit:
            kept.add(piece.id)
            limit -= len(piece.text)
    return tuple(p for p in pieces if p.id in kept)


def cut_short(text: str) -> int:
    """Where a quote of this text ends: its length, or the last clause border within the longest quote."""
    if len(text) <= LONGEST_QUOTE:
        return len(text)
    borders = [m.end() for m in _CLAUSE.finditer(text, LONGEST_QUOTE // 2, LONGEST_QUOTE)]
    gap = text.rfind(" ", 0, LONGEST_QUOTE)
    return borders[-1] if borders else gap if gap > 0 else LONGEST_QUOTE
