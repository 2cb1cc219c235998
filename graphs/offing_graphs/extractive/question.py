"""How a question is taken apart without a model: polite words, several questions, comparisons, lists, pronouns.

English patterns; a question in another language stays whole. Knows neither documents nor tools.
"""

import re
from collections.abc import Iterable, Sequence

from offing_graphs.extractive.words import STOP_WORDS, WEAK_WORDS, terms

MOST_PARTS = 8

_ASKS = (
    r"(?:how|what|why|when|where|which|who|whom|whose|whether|does|do|did|is|are|was|were|can|could|should|would|will|"
    r"must|has|have)"
)
_TASKS = r"(?:compare|say|list|find|summari[sz]e|describe|explain|show|name|give|calculate|compute|outline|contrast)"
_POLITE = re.compile(
    r"^(?:please|kindly|hi|hello|hey|thanks|ok|okay|so|also|and|now|"
    r"(?:can|could|would|will) you(?: please)?(?: tell me| explain| describe| show me| find out)?|"
    r"i(?:'d| would)? (?:like|want|need) to (?:know|understand|find out|learn)|i wonder|do you know|"
    r"tell me|explain(?: to me)?|show me|help me understand|let me know)\b[\s,:]*(?:about\s+)?",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:tell|show|explain|let me know|i(?:'d| would)? (?:want|need|like) to (?:know|understand|find out|learn))\b",
    re.IGNORECASE,
)
_BORDER = re.compile(r"(?<=[?\uff1f\u061f])\s*|(?<=[.!])\s+(?=[A-Z])|[;\n\u3002]+\s*")
_ASKING = re.compile(rf"(?:{_ASKS}|{_TASKS})\b", re.IGNORECASE)
_COMPARED_HOW = re.compile(
    r"^(?:(?:compare|contrast|say|describe|explain|show)\s+)?(?P<head>how|what|why|when|where)\s+"
    r"(?P<a>\w\S*(?:\s\w\S*)?)\s+(?:and|versus|vs\.?)\s+(?P<b>\w\S*)\s+(?P<tail>\w+\b.*)$",
    re.IGNORECASE,
)
"""`compare how A and B handle C`: the same is asked of both."""
_PLURAL = re.compile(r"(?:do|does|did|are|is|can|should|will|many|much|long|often)\b", re.IGNORECASE)
_AND_ASKS = re.compile(
    r"(?:\s*,\s*(?:and|but|or)?\s*|\s+and\s+(?:also\s+)?)(?=(?:how|what|why|when|where|which|who|whether)\b)",
    re.IGNORECASE,
)
_COMPARISONS = (
    r"^(?:compare|contrast)\s+(?P<a>.+?)\s+(?:and|with|to|against|versus|vs\.?)\s+(?P<b>.+?){aspect}$",
    r"\bdifferences?\s+between\s+(?P<a>.+?)\s+and\s+(?P<b>.+?){aspect}$",
    r"^how\s+(?:do|does|is|are)\s+(?P<a>.+?)\s+(?:compared?\s+(?:to|with|against)|differ(?:ent)?\s+from)\s+"
    r"(?P<b>.+?){aspect}$",
    r"^how\s+(?:do|does)\s+(?P<a>.+?)\s+and\s+(?P<b>.+?)\s+(?:compare|differ){aspect}$",
    r"^(?:when\s+should\s+\w+\s+use\s+)?(?P<a>\S+(?:\s\S+){{0,4}}?)\s+(?:vs\.?|versus)\s+(?P<b>\S+(?:\s\S+){{0,4}}?){aspect}$",
)
_ASPECT = (
    r"(?:\s+(?:in terms of|with (?:respect|regard) to|with regards to|regarding|concerning|when it comes to|for)"
    r"\s+(?P<aspect>.+))?"
)
_COMPARED = tuple(re.compile(p.format(aspect=_ASPECT), re.IGNORECASE) for p in _COMPARISONS)
_TWO_SUBJECTS = re.compile(
    r"^(?P<head>(?:how|what|why|when|where)\s+(?:do|does|did|are|is|can|should)\s+)"
    r"(?P<list>\w\S*(?:\s\w\S*){0,2}?(?:,\s*\w\S*(?:\s\w\S*){0,2})*,?\s+and\s+\w\S*(?:\s\w\S*){0,1}?)"
    r"(?P<tail>\s+(?:work|works|handle|deal|support|behave|treat|process|differ|interact|relate|manage|do|mean|perform|"
    r"scale|fail|parse|validate|serialize|configured|used|implemented|defined|created|registered)\b.*)$",
    re.IGNORECASE,
)
_LIST_OF = re.compile(
    r"^(?P<head>.*?\b(?:are|is|describe|list|explain|summari[sz]e|outline|name|give)\s+(?:the\s+)?(?:main\s+)?)"
    r"(?P<list>\w[\w\s-]{0,40}(?:,\s*[\w\s-]{1,40})*,?\s+and\s+[\w-]+(?:\s[\w-]+)?)(?P<tail>\s+(?:of|for|in|to|when)\s+.+)$",
    re.IGNORECASE,
)
_LIST_AT_END = re.compile(
    r"^(?P<head>.*\b(?:of|for|with|about|in|to|by|from|are|is|do|does)\s+)"
    r"(?P<list>[^,?]{1,40}(?:,\s*[^,?]{1,40})+,?\s+and\s+[^,?]{1,40})(?P<tail>)$",
    re.IGNORECASE,
)
_SCOPE = re.compile(r"\s+(?:in|with|using|of|for)\s+(?P<name>[\w.-]+)$", re.IGNORECASE)
_ITEM_BORDER = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|she|him|her|one)\b", re.IGNORECASE)
_ELLIPSIS = re.compile(r"^\s*(?:and|but|or|what about|how about|also|why not|then)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\s,;:?!()\"\u201c\u201d]+")


def sub_questions(question: str, earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """The parts of a question that can be looked up one by one; at least one, at most `MOST_PARTS`.

    `earlier`: the thread's earlier questions, oldest first, for what a follow-up leaves unsaid.
    """
    sentences = [s for s in map(_tidy, _BORDER.split(question)) if terms(s)]
    asking = [s for s in sentences if _ASKING.match(_polite_off(s)) or _REQUEST.search(s)] or sentences
    found: list[str] = []
    for sentence in asking:
        before = sentences[: sentences.index(sentence)]
        found += _resolved(_split(_polite_off(sentence)), [*earlier[-1:], *before], question)
    unique = dict.fromkeys(_capital(part) for part in found if part)
    return tuple(unique)[:MOST_PARTS] or (" ".join(question.split()),)


def compares(part: str) -> bool:
    """The part sets two things side by side."""
    return bool(_comparison(part))


def key_phrases(text: str) -> tuple[str, ...]:
    """Stretches of words that matter, as written, the most telling first."""
    phrases: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        bare = word.strip("'\u2019.`*").lower()
        if bare in STOP_WORDS or bare in WEAK_WORDS or not any(c.isalnum() for c in bare):
            phrases.append([])
        else:
            phrases[-1].append(word.strip("`*").rstrip("."))
    joined = [" ".join(p) for p in phrases if p]
    return tuple(sorted(dict.fromkeys(joined), key=lambda p: -_telling(p)))


def _telling(phrase: str) -> float:
    """Identifiers, names and long phrases tell more."""
    words = phrase.split()
    special = sum(any(c.isupper() for c in w[1:]) or any(c in w for c in "._-/") or w[:1].isupper() for w in words)
    return min(len(words), 3) + 1.5 * special


def _tidy(sentence: str) -> str:
    return " ".join(sentence.split()).strip(" ?!.\uff1f\u061f")


def _polite_off(sentence: str) -> str:
    while (rest := _POLITE.sub("", sentence, count=1)) != sentence and rest:
        sentence = rest
    return sentence


def _split(sentence: str) -> list[str]:
    """One sentence in its parts."""
    compared = (
        []
        if re.match(r"(?:compare|contrast)\s+(?:how|what|why|when|where)\b", sentence, re.I)
        else _comparison(sentence)
    )
    if compared:
        return compared
    if both := _both(sentence):
        return both
    clauses = [c.strip(" ,") for c in _AND_ASKS.split(sentence) if c.strip(" ,")]
    if len(clauses) > 1 and all(terms(c) for c in clauses):
        return [part for clause in clauses for part in _split(clause)]
    for pattern in (_TWO_SUBJECTS, _LIST_OF, _LIST_AT_END):
        match = pattern.match(sentence)
        if match and (items := _items(match["list"])):
            return [f"{match['head']}{item}{match['tail']}" for item in items]
    return [sentence]


def _both(sentence: str) -> list[str]:
    """What is asked of two things, asked of each; then the clauses that follow. Empty: nothing is."""
    first, *rest = [c.strip(" ,") for c in _AND_ASKS.split(sentence) if c.strip(" ,")] or [""]
    match = _COMPARED_HOW.match(first)
    if not match or _PLURAL.match(match["a"]) or not (terms(match["a"]) and terms(match["b"])):
        return []
    verb, _, rest_of = match["tail"].partition(" ")
    about = rest_of or verb
    sides = [f"{match['head']} {side} {_with_s(verb, side)} {rest_of}".strip() for side in (match["a"], match["b"])]
    after = [part for clause in rest for part in _split(clause)]
    return [*sides, *(f"{part} ({about})" for part in after)]


def _with_s(verb: str, subject: str) -> str:
    """The verb as it is said of one thing: Pool handles, hooks handle."""
    return verb if subject.endswith("s") or verb.endswith("s") else f"{verb}s"


def _items(listed: str) -> list[str]:
    items = [item.strip() for item in _ITEM_BORDER.split(listed) if item.strip()]
    return items if 1 < len(items) <= MOST_PARTS and all(terms(i) and len(i.split()) <= 5 for i in items) else []


def _comparison(sentence: str) -> list[str]:
    """The comparison itself, then each side. Empty: nothing is compared."""
    for pattern in _COMPARED:
        match = pattern.search(sentence)
        if match and terms(match["a"]) and terms(match["b"]):
            about = f": {match['aspect']}" if match["aspect"] else ""
            first, second = _bare(match["a"]), _bare(match["b"])
            scope = _SCOPE.search(second)
            noun = _SCOPE.sub("", second).split()[1:]
            first += f" {noun[-1]}" if len(first.split()) == 1 and len(noun) == 1 else ""
            return [sentence, f"{first}{scope.group() if scope else ''}{about}", f"{second}{about}"]
    return []


def _bare(side: str) -> str:
    return re.sub(r"^(?:the|a|an|using|use)\s+", "", side.strip(), flags=re.IGNORECASE)


def _resolved(parts: Iterable[str], before: Sequence[str], question: str) -> list[str]:
    """Parts that lean on what was said before, with that added in brackets."""
    found: list[str] = []
    for part in parts:
        leans = (
            (not part.endswith(")") and bool(_PRONOUN.search(part)))
            or (not found and _ELLIPSIS.match(question))
            or _is_bare(part, found)
        )
        subject = _subject([*before, *found]) if leans else ""
        known = {t.whole for t in terms(part)}
        missing = subject and not {t.whole for t in terms(subject)} <= known
        found.append(f"{part} ({subject})" if missing else f"{part}{_scope(part, found)}")
    return found


def _scope(part: str, found: Sequence[str]) -> str:
    """`how do I … in fastify and what happens when …`: the second part is about fastify, too."""
    scope = _SCOPE.search(found[0]) if found and not _SCOPE.search(part) else None
    name = scope["name"] if scope else ""
    return f" ({name})" if name and name.lower() not in part.lower() and not all(t.weak for t in terms(name)) else ""


def _is_bare(part: str, found: Sequence[str]) -> bool:
    """A later part with hardly a word of its own, such as `and when`."""
    return bool(found) and all(t.weak for t in terms(part))


def _subject(said: Sequence[str]) -> str:
    """What the last sentence that names something is about."""
    for sentence in reversed(said):
        phrases = key_phrases(sentence)
        if phrases:
            return phrases[0]
    return ""


def _capital(part: str) -> str:
    """A sentence begins with a capital, unless its first word is spelt in a way of its own."""
    first = part.split(" ", 1)[0]
    return part[:1].upper() + part[1:] if first.isalpha() and first.islower() and _ASKING.match(part) else part
