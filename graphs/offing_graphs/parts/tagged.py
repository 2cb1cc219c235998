"""Answers as plain text, for models without tool calling: tagged blocks and labelled sections, read strictly.

The only home of both grammars and of where their parts lie in the text. Knows no role; raises for nothing that a model
wrote.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from offing.sdk import SpanKind, TextSpan, Unusable

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One part of an answer. `start` and `end` are code points of the whole text, tags or label included."""

    text: str
    """What it says, without white space around it."""
    start: int
    end: int

    def span(self, kind: SpanKind) -> TextSpan:
        return TextSpan(kind, self.start, self.end)


Blocks = Mapping[str, Block]


def thoughts_end(text: str) -> int:
    """Where what a model thought aloud before its answer ends. 0: it thought nothing aloud."""
    found = _THOUGHTS.match(text)
    return found.end() if found else 0


def whole(text: str) -> Block | None:
    """The answer after the thoughts as one block. None: there is none."""
    start = thoughts_end(text)
    said = text[start:].strip()
    at = text.find(said, start)
    return Block(said, at, at + len(said)) if said else None


def tagged(text: str, names: Sequence[str], optional: Sequence[str] = ()) -> Blocks | Unusable:
    """The blocks `<name>…</name>` of these names, in this order, each once, with nothing but white space between."""
    found: dict[str, Block] = {}
    at = thoughts_end(text)
    for name in names:
        match = re.compile(rf"\s*(<{name}>(.*?)</{name}>)", re.DOTALL).match(text, at)
        if match:
            found[name] = Block(match.group(2).strip(), match.start(1), match.end(1))
            at = match.end()
        elif name not in optional:
            return Unusable(f"Expected the block <{name}>…</{name}> at: {_seen(text[at:])}")
    rest = text[at:].strip()
    return Unusable(f"Nothing may stand beside the blocks, but there is: {_seen(rest)}") if rest else found


def labelled(text: str, labels: Sequence[str]) -> Blocks | Unusable:
    """The sections `Label: …` of these labels, each begun on a line of its own, in this order, each once."""
    heads = list(re.compile(rf"^[ \t]*({'|'.join(map(re.escape, labels))}):", re.M).finditer(text, thoughts_end(text)))
    if [h.group(1) for h in heads] != list(labels):
        return Unusable(f"Expected the sections {', '.join(labels)}, each once and in this order.")
    if before := text[thoughts_end(text) : heads[0].start()].strip():
        return Unusable(f"Nothing may stand before {labels[0]}, but there is: {_seen(before)}")
    ends = [*(h.start() for h in heads[1:]), len(text)]
    return {h.group(1): _section(text, h, end) for h, end in zip(heads, ends, strict=True)}


def written(blocks: Iterable[tuple[str, str]]) -> str:
    """Text that `tagged` reads back."""
    return "\n".join(f"<{name}>{text}</{name}>" for name, text in blocks)


def _section(text: str, head: re.Match[str], end: int) -> Block:
    return Block(text[head.end() : end].strip(), head.start(), len(text[:end].rstrip()))


def _seen(text: str) -> str:
    return repr(text.strip()[:80]) if text.strip() else "the end"
