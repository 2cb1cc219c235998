"""Model output as plain text: tagged blocks and labeled sections, parsed strictly.

The parsers also return the position of each part in the text. Invalid output never raises.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat, RepairedText, SpanKind
from offing_graphs.shared.prompt_parts import add_format_rules

InputT = TypeVar("InputT", bound=BaseModel)
OutputT = TypeVar("OutputT", bound=BaseModel)

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One part of an output.

    `start` and `end` are code points of the whole text and include the tags or the label.
    """

    text: str
    """Content of the part, without surrounding white space."""
    start: int
    end: int

    def to_span(self, kind: SpanKind) -> CompletionSpan:
        return CompletionSpan(kind, self.start, self.end)


Blocks = Mapping[str, Block]
NamedBlocks = tuple[tuple[str, Block], ...]
"""Blocks with their names, in the order of the text."""


def find_thoughts_end(text: str) -> int:
    """Return the end of the model's thoughts before its answer. 0 means that there are none."""
    match = _THOUGHTS.match(text)
    return match.end() if match else 0


def parse_whole(text: str) -> Block | None:
    """Return the output after the thoughts as one block. `None` means that it is empty."""
    start = find_thoughts_end(text)
    answer = text[start:].strip()
    at = text.find(answer, start)
    return Block(answer, at, at + len(answer)) if answer else None


def find_whole_span(text: str, kind: SpanKind) -> tuple[CompletionSpan, ...]:
    """Return one span for the output after the thoughts, or none if it is empty."""
    block = parse_whole(text)
    return (block.to_span(kind),) if block else ()


def parse_tagged(text: str, names: Sequence[str], optional: Sequence[str] = ()) -> Blocks | InvalidOutput:
    """Parse the blocks `<name>…</name>` of these names.

    The blocks must stand in this order, each once, with only white space between them.
    """
    blocks = parse_tagged_list(text, names, optional)
    return blocks if isinstance(blocks, InvalidOutput) else dict(blocks)


def parse_tagged_list(
    text: str, names: Sequence[str], optional: Sequence[str] = (), repeated: Sequence[str] = ()
) -> NamedBlocks | InvalidOutput:
    """Parse blocks as `parse_tagged` does. Those in `repeated` may stand there several times, one after another."""
    blocks: list[tuple[str, Block]] = []
    at = find_thoughts_end(text)
    for name in names:
        matches = _match_blocks(text, name, at, repeats=name in repeated)
        if not matches and name not in optional:
            return InvalidOutput(
                f"Expected the block <{name}>…</{name}> at: {_quote_start(text[at:])}. {_render_form(names)}"
            )
        blocks += [(name, block) for block in matches]
        at = matches[-1].end if matches else at
    rest = text[at:].strip()
    if rest:
        return InvalidOutput(
            f"Nothing may stand beside the blocks, but there is: {_quote_start(rest)}. {_render_form(names)}"
        )
    return tuple(blocks)


def _match_blocks(text: str, name: str, at: int, *, repeats: bool) -> list[Block]:
    """Return the blocks of a name that begin at a position, at most one unless it may be repeated."""
    pattern, blocks = re.compile(rf"\s*(<{name}>(.*?)</{name}>)", re.DOTALL), list[Block]()
    while (match := pattern.match(text, at)) and (repeats or not blocks):
        blocks.append(Block(match.group(2).strip(), match.start(1), match.end(1)))
        at = match.end()
    return blocks


def parse_labeled(text: str, labels: Sequence[str]) -> Blocks | InvalidOutput:
    """Parse the sections `Label: …` of these labels.

    The sections must stand in this order, each once, and each must begin on a new line.
    """
    heads = list(
        re.compile(rf"^[ \t]*({'|'.join(map(re.escape, labels))}):", re.M).finditer(text, find_thoughts_end(text))
    )
    if [h.group(1) for h in heads] != list(labels):
        return InvalidOutput(_describe_labels([h.group(1) for h in heads], labels))
    if before := text[find_thoughts_end(text) : heads[0].start()].strip():
        return InvalidOutput(f"Nothing may stand before {labels[0]}, but there is: {_quote_start(before)}")
    ends = [*(h.start() for h in heads[1:]), len(text)]
    return {h.group(1): _build_section(text, h, end) for h, end in zip(heads, ends, strict=True)}


def build_text_format(
    render: Callable[[InputT], tuple[Message, ...]],
    format_rules: str,
    parse: Callable[[str, InputT], OutputT | InvalidOutput],
    write: Callable[[OutputT, InputT], str],
    span_kind: SpanKind | None = None,
    repair: Callable[[str, InputT], RepairedText] | None = None,
) -> PromptFormat[InputT, OutputT]:
    """Return the `text` format of a role.

    `render` renders the prompt for JSON, to which the rules of the format are added. `span_kind` is
    the kind of the whole completion. `None` means that it has no span. `repair` repairs the text of a
    provider's model.
    """
    return PromptFormat(
        "text",
        lambda inputs: add_format_rules(render(inputs), format_rules),
        parse,
        lambda text: find_whole_span(text, span_kind) if span_kind else (),
        write,
        repair=repair,
    )


def validate_output(schema: type[OutputT], fields: Mapping[str, Any], whole_name: str = "") -> OutputT | InvalidOutput:
    """Validate the fields and return the output, or the first validation error.

    `whole_name` names the output in errors that belong to no field.
    """
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        location = ".".join(map(str, first["loc"])) or whole_name
        return InvalidOutput(f"{location}: {first['msg']}" if location else first["msg"])


def render_tagged(blocks: Iterable[tuple[str, str]]) -> str:
    """Render blocks as text that `parse_tagged` can parse."""
    return "\n".join(f"<{name}>{text}</{name}>" for name, text in blocks)


def _render_form(names: Sequence[str]) -> str:
    return f"The form is: {' '.join(f'<{name}>…</{name}>' for name in names)}"


def _describe_labels(present: Sequence[str], labels: Sequence[str]) -> str:
    """Describe which labels are missing or repeated, with the form that is expected."""
    missing = [label for label in labels if label not in present]
    repeated = [label for label in labels if present.count(label) > 1]
    problems = [
        *([f"No line begins with: {', '.join(f'{label}:' for label in missing)}."] if missing else []),
        *([f"More than one line begins with: {', '.join(f'{label}:' for label in repeated)}."] if repeated else []),
    ]
    form = " / ".join(f"{label}: …" for label in labels)
    return " ".join([*(problems or ["The sections are not in order."]), f"Write one line each, in this order: {form}"])


def _build_section(text: str, head: re.Match[str], end: int) -> Block:
    return Block(text[head.end() : end].strip(), head.start(), len(text[:end].rstrip()))


def _quote_start(text: str) -> str:
    return repr(text.strip()[:80]) if text.strip() else "the end"
