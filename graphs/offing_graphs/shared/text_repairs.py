"""Repairs of the text formats: tags and labels in other letters, what stands around them, and styles of citations.

Only the form changes: no word of an answer is replaced, and a text that is right stays unchanged.
They serve the models of providers. A policy's completions are parsed as sampled.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from offing.sdk import RepairedText, remove_code_fence, remove_thoughts
from offing_graphs.shared.schemas import RetrievedPassage
from offing_graphs.shared.source_names import name_passages

TextRepair = Callable[[str, Any], RepairedText]

THOUGHTS, CODE_FENCE, PROSE_AROUND = "thoughts", "code_fence", "prose_around"
TAGS, UNCLOSED_TAG, LABELS, ORDER = "tags", "unclosed_tag", "labels", "order"
CITATION_STYLE, EVIDENCE_ID, HEADINGS, BOLD = "citation_style", "evidence_id", "headings", "bold"
MAX_PREAMBLE_CHARS = 300
"""Maximum length of prose before a report that is left out."""

_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$\n?", re.MULTILINE)
_QUOTED = r"[\"\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019'](.{0,4000}?)[\"\u201c\u201d\u201f\u00ab\u00bb\u2018\u2019']"
_END_OF_QUOTE = r"(?=\s*(?:[\])\u3011\uff09]|[;,]\s*\^?E\d))"
_CITE = re.compile(rf"\^?(?:[Pp]assage |[Ee]vidence )?(E\d+)(?:\s*[:,\u2013-]?\s*{_QUOTED}{_END_OF_QUOTE})?", re.DOTALL)
_OPENING = re.compile(r"[\[(\u3010\uff08]\s*(?=\^?(?:[Pp]assage |[Ee]vidence )?E\d)")
_SEPARATOR = re.compile(r"\s*(?:[;,]|and)\s*|\s+")
_CLOSING = re.compile(r"\s*[\])\u3011\uff09]")
_CANONICAL = re.compile(r"\[E\d+(?:\s*[,;]\s*E\d+)*\]|\[E\d+: \"(?:[^\"\\]|\\.)*\"\]", re.DOTALL)
_BOLD_LINE = re.compile(r"^[ \t]*(?:\*\*|__)([^*_\n]{1,200}?)(?::?(?:\*\*|__):?|:?)[ \t]*$", re.MULTILINE)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]{1,400}?)(?<=\S)\*\*(?![\w*])")
_LIMITS = re.compile(
    r"^[ \t]*(?:#+[ \t]*)?(?:\*\*|__)?(limits|limitations)(?:\*\*|__)?:(?:\*\*|__)?[ \t]*", re.I | re.M
)
_TITLE = re.compile(r"^# ", re.MULTILINE)
_REPORT_PART = re.compile(r"^#{1,6} |\[E\d", re.MULTILINE)


def repair_report(text: str, evidence: Sequence[RetrievedPassage] = ()) -> RepairedText:
    """Repair a report as text. `evidence` are the passages that it may cite."""
    return (
        RepairedText(text)
        .then(THOUGHTS, remove_thoughts)
        .then(CODE_FENCE, remove_code_fence)
        .then(PROSE_AROUND, _remove_preamble)
        .then(HEADINGS, _repair_headings)
        .then(EVIDENCE_ID, lambda one: name_passages(one, evidence))
        .then(CITATION_STYLE, repair_citations)
        .then(BOLD, remove_bold)
    )


def build_label_repair(labels: Sequence[str], optional: Sequence[str] = ()) -> TextRepair:
    """Return the repair of a format of labeled sections. Those in `optional` follow the others and may be missing."""

    def repair(text: str, _inputs: object) -> RepairedText:
        return (
            RepairedText(text)
            .then(THOUGHTS, remove_thoughts)
            .then(CODE_FENCE, remove_code_fence)
            .then(LABELS, lambda one: _repair_labels(one, (*labels, *optional)))
            .then(PROSE_AROUND, lambda one: _remove_before_label(one, list_labels(one)))
            .then(ORDER, lambda one: _sort_sections(one, list_labels(one)))
        )

    def list_labels(text: str) -> tuple[str, ...]:
        present = {head.group(1) for head in _find_labels(text, optional)} if optional else set[str]()
        return (*labels, *(label for label in optional if label in present))

    return repair


def build_tag_repair(
    names: Sequence[str],
    *,
    report_tags: Sequence[str] = (),
    list_evidence: Callable[[Any], Sequence[RetrievedPassage]] = lambda _: (),
    keeps_thoughts: bool = False,
    repeated: Sequence[str] = (),
) -> TextRepair:
    """Return the repair of a format of tagged blocks.

    `report_tags` are the blocks that hold a report, which cites what `list_evidence` returns.
    `keeps_thoughts` means that the format has a place for thoughts. Blocks in `repeated` may stand there
    several times.
    """

    def repair(text: str, inputs: object) -> RepairedText:
        head, body = _split_thoughts(text) if keeps_thoughts else ("", text)
        repaired = RepairedText(body).then(THOUGHTS, remove_thoughts)
        repaired = repaired.then(TAGS, lambda one: _repair_tags(one, names))
        repaired = repaired.then(UNCLOSED_TAG, lambda one: _close_last_tag(one, names))
        repaired = repaired.then(PROSE_AROUND, lambda one: _keep_blocks(one, names, repeated))
        for name in report_tags:
            repaired = _repair_report_block(repaired, name, list_evidence(inputs))
        return RepairedText(head + repaired.text, repaired.repairs)

    return repair


def repair_citations(text: str) -> str:
    """Write every citation as `[E3: "words"]`, or as `[E3]` without words."""
    parts, at = list[str](), 0
    while match := _OPENING.search(text, at):
        canonical = _CANONICAL.match(text, match.start())
        end, cites = (canonical.end(), None) if canonical else _read_citation(text, match.end())
        parts += [text[at : match.start()], text[match.start() : end] if cites is None else cites]
        at = end
    return "".join(parts) + text[at:]


def looks_like_report(text: str) -> bool:
    """Return whether a text has a heading or a citation."""
    return bool(_REPORT_PART.search(text))


def _read_citation(text: str, at: int) -> tuple[int, str | None]:
    """Return the end of a citation and its canonical form. `None` means that it is no citation."""
    cites: list[tuple[str, str | None]] = []
    while cite := _CITE.match(text, at):
        cites.append((cite.group(1), cite.group(2)))
        at = cite.end()
        if closing := _CLOSING.match(text, at):
            return closing.end(), _render_cites(cites)
        separator = _SEPARATOR.match(text, at)
        at = separator.end() if separator else at
    return at, None


def _render_cites(cites: Sequence[tuple[str, str | None]]) -> str:
    plain = [id for id, quote in cites if not (quote or "").strip()]
    quoted = [f"[{id}: {_quote(quote)}]" for id, quote in cites if quote and quote.strip()]
    return " ".join([*([f"[{', '.join(plain)}]"] if plain else []), *quoted])


def _quote(words: str) -> str:
    """Return words as a JSON string. Escapes that they contain already are kept."""
    with suppress(ValueError):
        words = str(json.loads(f'"{words}"'))
    return json.dumps(words, ensure_ascii=False)


def _remove_preamble(text: str) -> str:
    """Remove a short introduction before a report's title, such as `Here is the report:`."""
    title = _TITLE.search(text)
    if title is None or not (before := text[: title.start()].strip()):
        return text
    is_report = len(before) > MAX_PREAMBLE_CHARS or "\n\n" in before or looks_like_report(before)
    return text if is_report else text[title.start() :]


def _repair_headings(text: str) -> str:
    """Write bold lines as headings, the first one as the title if there is none, and the limits on a plain line."""
    text = _LIMITS.sub("Limits: ", text)
    has_title = bool(_TITLE.search(text))
    parts = text.split("\n")
    for number, line in enumerate(parts):
        if (bold := _BOLD_LINE.fullmatch(line)) is None:
            continue
        is_title = not has_title and not any(one.strip() for one in parts[:number])
        parts[number] = f"{'#' if is_title else '##'} {bold.group(1).strip()}"
        has_title = has_title or is_title
    return "\n".join(parts)


def remove_bold(text: str) -> str:
    """Remove marks of bold text outside of quotes, which are copied letter by letter."""
    ends = [0, *(edge for match in _CANONICAL.finditer(text) for edge in match.span()), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    return "".join(_BOLD.sub(r"\1", piece) if number % 2 == 0 else piece for number, piece in enumerate(pieces))


def _flexible(name: str) -> str:
    """Return a pattern for a name in any letters, with a space, hyphen, underscore or nothing between its words."""
    return r"[ _-]?".join(map(re.escape, re.split(r"[ _-]", name)))


def _repair_labels(text: str, labels: Sequence[str]) -> str:
    for label in labels:
        pattern = rf"^[ \t]*(?:[-*+>#]+[ \t]+|\d+[.)][ \t]+)*[*_`]*{_flexible(label)}[*_`]*[ \t]*:[*_`]*[ \t]*"
        matches = list(re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE))
        if len(matches) == 1 and matches[0].group().strip() != f"{label}:":
            text = f"{text[: matches[0].start()]}{label}: {text[matches[0].end() :]}"
    return text


def _find_labels(text: str, labels: Sequence[str]) -> list[re.Match[str]]:
    return list(re.finditer(rf"^[ \t]*({'|'.join(map(re.escape, labels))}):", text, re.MULTILINE))


def _remove_before_label(text: str, labels: Sequence[str]) -> str:
    heads = _find_labels(text, labels)
    if not heads or sorted(h.group(1) for h in heads) != sorted(labels):
        return text
    if not text[: heads[0].start()].strip():
        return text
    return _FENCE_LINE.sub("", text[heads[0].start() :]).strip()


def _sort_sections(text: str, labels: Sequence[str]) -> str:
    """Put sections in order, if each label stands there once."""
    heads = _find_labels(text, labels)
    names = [h.group(1) for h in heads]
    if names == list(labels) or sorted(names) != sorted(labels):
        return text
    ends = [*(h.start() for h in heads[1:]), len(text)]
    sections = {h.group(1): text[h.start() : end].strip() for h, end in zip(heads, ends, strict=True)}
    return "\n".join(sections[label] for label in labels)


def _split_thoughts(text: str) -> tuple[str, str]:
    body = remove_thoughts(text)
    head = text[: len(text) - len(body)] if text.endswith(body) else ""
    return (head, body) if "<think>" in head else ("", text)


def _repair_tags(text: str, names: Sequence[str]) -> str:
    for name in names:
        pattern = rf"[*`]*<\s*(/?)\s*{_flexible(name)}\s*>[*`]*"
        text = re.sub(pattern, rf"<\1{name}>", text, flags=re.IGNORECASE)
    return text


def _close_last_tag(text: str, names: Sequence[str]) -> str:
    """Close the last block if only its closing tag is missing."""
    tags = list(re.finditer(rf"<(/?)({'|'.join(map(re.escape, names))})>", text))
    if not tags or tags[-1].group(1):
        return text
    name = tags[-1].group(2)
    return f"{_strip_fence_end(text.rstrip())}</{name}>" if f"</{name}>" not in text[tags[-1].end() :] else text


def _strip_fence_end(text: str) -> str:
    return re.sub(r"\n[ \t]*`{3,}\Z", "", text)


def _keep_blocks(text: str, names: Sequence[str], repeated: Sequence[str]) -> str:
    """Leave out what stands around and between the blocks, if each block stands there as often as it may."""
    matches = [
        list(re.finditer(rf"<({name})>.*?</{name}>", text, re.DOTALL)) for name in dict.fromkeys((*names, *repeated))
    ]
    if any(len(group) > 1 and group[0].group(1) not in repeated for group in matches):
        return text
    blocks = sorted((one for group in matches for one in group), key=lambda one: one.start())
    ends = [0, *(end for one in blocks for end in one.span()), len(text)]
    rest = "".join(text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    if not blocks or not rest.strip() or re.search(rf"</?(?:{'|'.join(map(re.escape, names))})>", rest):
        return text
    return "\n".join(one.group() for one in blocks)


def _repair_report_block(repaired: RepairedText, name: str, evidence: Sequence[RetrievedPassage]) -> RepairedText:
    match = re.search(rf"<{name}>(.*?)</{name}>", repaired.text, re.DOTALL)
    if match is None:
        return repaired
    inner = repair_report(match.group(1), evidence)
    if not inner.repairs:
        return repaired
    text = f"{repaired.text[: match.start(1)]}\n{inner.text.strip()}\n{repaired.text[match.end(1) :]}"
    return RepairedText(text, tuple(dict.fromkeys((*repaired.repairs, *inner.repairs))))
