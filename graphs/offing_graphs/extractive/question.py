"""Question splitting without a model.

It handles polite phrases, several questions, comparisons, lists and pronouns. The patterns
are English. A question in another language stays whole.
"""

import re
from collections.abc import Iterable, Sequence

from offing_graphs.extractive.word_forms import STOP_WORDS, WEAK_WORDS, extract_terms

MAX_PARTS = 8

_QUESTION_WORDS = (
    r"(?:how|what|why|when|where|which|who|whom|whose|whether|does|do|did|is|are|was|were|can|could|should|would|will|"
    r"must|has|have)"
)
_TASK_WORDS = (
    r"(?:compare|say|list|find|summari[sz]e|describe|explain|show|name|give|calculate|compute|outline|contrast)"
)
_POLITE = re.compile(
    r"^(?:please|kindly|hi|hello|hey|thanks|ok|okay|so|also|and|now|"
    r"(?:can|could|would|will) you(?: please)?(?: tell me| explain| describe| show me| find out)?|"
    r"i(?:'d| would)? (?:like|want|need) to (?:know|understand|find out|learn)|i wonder|do you know|"
    r"tell me|explain(?: to me)?|show me|help me understand|let me know)\b[\s,:]*(?:about\s+)?",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"(?:^|,?\s*(?:and|but|;)?\s+)if\b[^?]{0,120}?"
    r"(?:[\s,;](?:say so|tell me so|let me know|state so)|"
    r"[,;]\s*(?:(?:then|please|just)\s+){0,2}(?:tell me|say (?:that|it)\b[^?]*|state (?:that|it)\b[^?]*))$",
    re.IGNORECASE,
)
"""Matches an instruction on what to answer if nothing was found, such as `if it is not documented, say so`."""
_REQUEST = re.compile(
    r"\b(?:tell|show|explain|let me know|i(?:'d| would)? (?:want|need|like) to (?:know|understand|find out|learn))\b",
    re.IGNORECASE,
)
_BORDER = re.compile(r"(?<=[?\uff1f\u061f])\s*|(?<=[.!])\s+(?=[A-Z])|[;\n\u3002]+\s*")
_ASKING = re.compile(rf"(?:{_QUESTION_WORDS}|{_TASK_WORDS})\b", re.IGNORECASE)
_COMPARED_HOW = re.compile(
    r"^(?:(?:compare|contrast|say|describe|explain|show)\s+)?(?P<head>how|what|why|when|where)\s+"
    r"(?P<a>\w\S*(?:\s\w\S*)?)\s+(?:and|versus|vs\.?)\s+(?P<b>\w\S*)\s+(?P<tail>\w+\b.*)$",
    re.IGNORECASE,
)
"""Matches `compare how A and B handle C`, which asks the same of both."""
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


def split_question(question: str, earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Split a question into parts that can be looked up one by one.

    There is at least one part and at most `MAX_PARTS`. `earlier` are the thread's earlier
    questions, oldest first, which complete a follow-up question.
    """
    stripped = (_strip_instruction(_strip_punctuation(s)) for s in _BORDER.split(question))
    sentences = [s for s in stripped if s and extract_terms(s)]
    asking = [s for s in sentences if _ASKING.match(_strip_politeness(s)) or _REQUEST.search(s)] or sentences
    parts: list[str] = []
    for sentence in asking:
        before = sentences[: sentences.index(sentence)]
        parts += _resolve_references(_split_sentence(_strip_politeness(sentence)), [*earlier[-1:], *before], question)
    unique = dict.fromkeys(_capitalize(part) for part in parts if part)
    return tuple(unique)[:MAX_PARTS] or (" ".join(question.split()),)


def is_comparison(part: str) -> bool:
    """Return whether the part compares two things."""
    return bool(_split_comparison(part))


def extract_key_phrases(text: str) -> tuple[str, ...]:
    """Return phrases of telling words as written, most telling first."""
    phrases: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        bare = word.strip("'\u2019.`*").lower()
        if bare in STOP_WORDS or bare in WEAK_WORDS or not any(c.isalnum() for c in bare):
            phrases.append([])
        else:
            phrases[-1].append(word.strip("`*").rstrip("."))
    joined = [" ".join(p) for p in phrases if p]
    return tuple(sorted(dict.fromkeys(joined), key=lambda p: -_rate_phrase(p)))


def _rate_phrase(phrase: str) -> float:
    """Rate a phrase. Identifiers, names and long phrases rate higher."""
    words = phrase.split()
    special = sum(any(c.isupper() for c in w[1:]) or any(c in w for c in "._-/") or w[:1].isupper() for w in words)
    return min(len(words), 3) + 1.5 * special


def _strip_punctuation(sentence: str) -> str:
    return " ".join(sentence.split()).strip(" ?!.\uff1f\u061f")


def _strip_instruction(sentence: str) -> str:
    """Remove an instruction on what to answer if nothing was found. A sentence without a question becomes empty."""
    return _INSTRUCTION.sub("", sentence).rstrip(" ,;")


def _strip_politeness(sentence: str) -> str:
    while (rest := _POLITE.sub("", sentence, count=1)) != sentence and rest:
        sentence = rest
    return sentence


def _split_sentence(sentence: str) -> list[str]:
    """Split one sentence into its parts."""
    compared = (
        []
        if re.match(r"(?:compare|contrast)\s+(?:how|what|why|when|where)\b", sentence, re.I)
        else _split_comparison(sentence)
    )
    if compared:
        return compared
    if both := _split_shared_question(sentence):
        return both
    clauses = [c.strip(" ,") for c in _AND_ASKS.split(sentence) if c.strip(" ,")]
    if len(clauses) > 1 and all(extract_terms(c) for c in clauses):
        return [part for clause in clauses for part in _split_sentence(clause)]
    for pattern in (_TWO_SUBJECTS, _LIST_OF, _LIST_AT_END):
        match = pattern.match(sentence)
        if match and (items := _split_list(match["list"])):
            return [f"{match['head']}{item}{match['tail']}" for item in items]
    return [sentence]


def _split_shared_question(sentence: str) -> list[str]:
    """Split a question about two things into one per thing, followed by the remaining clauses.

    Returns an empty list if the sentence is no such question.
    """
    first, *rest = [c.strip(" ,") for c in _AND_ASKS.split(sentence) if c.strip(" ,")] or [""]
    match = _COMPARED_HOW.match(first)
    if not match or _PLURAL.match(match["a"]) or not (extract_terms(match["a"]) and extract_terms(match["b"])):
        return []
    verb, _, rest_of = match["tail"].partition(" ")
    about = rest_of or verb
    sides = [f"{match['head']} {side} {_conjugate(verb, side)} {rest_of}".strip() for side in (match["a"], match["b"])]
    after = [part for clause in rest for part in _split_sentence(clause)]
    return [*sides, *(f"{part} ({about})" for part in after)]


def _conjugate(verb: str, subject: str) -> str:
    """Conjugate a verb for its subject: Pool handles, hooks handle."""
    return verb if subject.endswith("s") or verb.endswith("s") else f"{verb}s"


def _split_list(text: str) -> list[str]:
    items = [item.strip() for item in _ITEM_BORDER.split(text) if item.strip()]
    return items if 1 < len(items) <= MAX_PARTS and all(extract_terms(i) and len(i.split()) <= 5 for i in items) else []


def _split_comparison(sentence: str) -> list[str]:
    """Return the comparison followed by each side. Empty means that nothing is compared."""
    for pattern in _COMPARED:
        match = pattern.search(sentence)
        if match and extract_terms(match["a"]) and extract_terms(match["b"]):
            about = f": {match['aspect']}" if match["aspect"] else ""
            first, second = _strip_article(match["a"]), _strip_article(match["b"])
            scope = _SCOPE.search(second)
            noun = _SCOPE.sub("", second).split()[1:]
            first += f" {noun[-1]}" if len(first.split()) == 1 and len(noun) == 1 else ""
            return [sentence, f"{first}{scope.group() if scope else ''}{about}", f"{second}{about}"]
    return []


def _strip_article(side: str) -> str:
    return re.sub(r"^(?:the|a|an|using|use)\s+", "", side.strip(), flags=re.IGNORECASE)


def _resolve_references(parts: Iterable[str], before: Sequence[str], question: str) -> list[str]:
    """Add the subject in brackets to parts that refer to an earlier part."""
    resolved: list[str] = []
    for part in parts:
        leans = (
            (not part.endswith(")") and bool(_PRONOUN.search(part)))
            or (not resolved and _ELLIPSIS.match(question))
            or _is_elliptic(part, resolved)
        )
        subject = _find_subject([*before, *resolved]) if leans else ""
        known = {t.stem for t in extract_terms(part)}
        missing = subject and not {t.stem for t in extract_terms(subject)} <= known
        resolved.append(f"{part} ({subject})" if missing else f"{part}{_build_scope_suffix(part, resolved)}")
    return resolved


def _build_scope_suffix(part: str, earlier_parts: Sequence[str]) -> str:
    """Return the scope of the first part for a later part.

    In `how do I … in fastify and what happens when …` the second part is also about fastify.
    """
    scope = _SCOPE.search(earlier_parts[0]) if earlier_parts and not _SCOPE.search(part) else None
    name = scope["name"] if scope else ""
    return (
        f" ({name})"
        if name and name.lower() not in part.lower() and not all(t.is_weak for t in extract_terms(name))
        else ""
    )


def _is_elliptic(part: str, earlier_parts: Sequence[str]) -> bool:
    """Return whether a later part has almost no content words, such as `and when`."""
    return bool(earlier_parts) and all(t.is_weak for t in extract_terms(part))


def _find_subject(sentences: Sequence[str]) -> str:
    """Return the key phrase of the last sentence that has one."""
    for sentence in reversed(sentences):
        phrases = extract_key_phrases(sentence)
        if phrases:
            return phrases[0]
    return ""


def _capitalize(part: str) -> str:
    """Capitalize the first word, unless it has a fixed spelling."""
    first = part.split(" ", 1)[0]
    return part[:1].upper() + part[1:] if first.isalpha() and first.islower() and _ASKING.match(part) else part
