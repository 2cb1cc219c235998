"""Reading a completion of a provider's model: strictly where it is right, with named repairs where its form is not.

A policy's completions are not read here. They are parsed as sampled, so that training data never
depends on repairs.
"""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from offing.core.model import InvalidOutput
from offing.core.text_repair import RepairedText
from offing.models.engine import RoleRequest
from offing.models.json_repair import repair_object, repair_surroundings
from offing.models.output_choice import check_choices
from offing.models.prompt_formats import RolePromptFormat
from offing.models.structured_output import parse_output

JSON_FORM, TEXT_FORM = "json_form", "text_form"
"""Names of the repairs that accept JSON in place of a text format, and the reverse."""
MAX_WRITTEN_CHARS = 8_000
"""Maximum number of code points of the original text that a record keeps beside a repaired one."""

_FORMATTED = re.compile(r"^#{1,3} |\[\^?E\d|^\s*</?[a-z_]+>|^\W*[A-Z][\w -]{2,20}:", re.MULTILINE)
"""Matches a text that follows a text format: a heading, a citation, a tag or a label."""


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """An output with the text that says it."""

    output: Any
    text: str
    """The completion, in the form that the format asks for if it was repaired."""
    repairs: tuple[str, ...] = ()
    """Names of the repairs, in order."""


def read_completion(
    prompt_format: RolePromptFormat | None, text: str, request: RoleRequest
) -> ReadOutput | InvalidOutput:
    """Read a completion as the role's output."""
    if "\x00" in text:
        return InvalidOutput("It holds a NUL character.")
    read = _read_format(prompt_format, text, request) if prompt_format else _read_json(text, request)
    return read if isinstance(read, InvalidOutput) else _repair_fields(read, prompt_format, request)


def describe_repairs(read: ReadOutput, written: str) -> dict[str, Any]:
    """Return what the record of a role call says about repairs. It is empty without repairs."""
    if not read.repairs:
        return {}
    return {"repairs": list(read.repairs), "written": written[:MAX_WRITTEN_CHARS]}


def _read_format(prompt_format: RolePromptFormat, text: str, request: RoleRequest) -> ReadOutput | InvalidOutput:
    in_json = _read_json_in_format(prompt_format, text, request)
    if isinstance(in_json, ReadOutput):
        return in_json
    repaired = prompt_format.repair(text, request.inputs) if prompt_format.repair else RepairedText(text)
    output = prompt_format.parse(repaired.text, request.inputs)
    if isinstance(output, InvalidOutput):
        return in_json or output
    return ReadOutput(output, repaired.text, repaired.repairs)


def _read_json_in_format(
    prompt_format: RolePromptFormat, text: str, request: RoleRequest
) -> ReadOutput | InvalidOutput | None:
    """Read a completion that is one JSON object of the output's type, although text was asked for.

    `None` means that it is no such object. An invalid value is returned if the object has a field of the type.
    """
    surrounded = repair_surroundings(text)
    if not surrounded.text.startswith("{"):
        return None
    read = _read_object(surrounded, request.role.output)
    if isinstance(read, InvalidOutput):
        return read if _names_a_field(surrounded.text, request.role.output) else None
    written = prompt_format.write(read.output, request.inputs) if prompt_format.write else read.text
    return ReadOutput(read.output, written, (*read.repairs, JSON_FORM))


def _names_a_field(text: str, output_type: type[BaseModel]) -> bool:
    return any(f'"{name}"' in text for name in output_type.model_fields)


def _read_json(text: str, request: RoleRequest) -> ReadOutput | InvalidOutput:
    surrounded = repair_surroundings(text)
    read = _read_object(surrounded, request.role.output)
    if not isinstance(read, InvalidOutput) or surrounded.text.startswith("{"):
        return read
    return _read_text_in_json(text, request) or read


def _read_object(surrounded: RepairedText, output_type: type[BaseModel]) -> ReadOutput | InvalidOutput:
    output = parse_output(surrounded.text, output_type)
    if not isinstance(output, InvalidOutput):
        return ReadOutput(output, surrounded.text, surrounded.repairs)
    repaired = repair_object(surrounded, output_type.model_json_schema())
    if repaired == surrounded:
        return output
    output = parse_output(repaired.text, output_type)
    return output if isinstance(output, InvalidOutput) else ReadOutput(output, repaired.text, repaired.repairs)


def _read_text_in_json(text: str, request: RoleRequest) -> ReadOutput | None:
    """Read a completion in the role's default text format, although JSON was asked for."""
    prompt_format = request.role.find_format(request.role.default_format)
    if prompt_format is None or not _FORMATTED.search(text):
        return None
    repaired = prompt_format.repair(text, request.inputs) if prompt_format.repair else RepairedText(text)
    output = prompt_format.parse(repaired.text, request.inputs)
    if isinstance(output, InvalidOutput):
        return None
    return ReadOutput(output, output.model_dump_json(), (*repaired.repairs, TEXT_FORM))


def _repair_fields(
    read: ReadOutput, prompt_format: RolePromptFormat | None, request: RoleRequest
) -> ReadOutput | InvalidOutput:
    """Apply the role's own repairs and its choices to an output."""
    role, output, repairs = request.role, read.output, ()
    if role.repair_output:
        output, repairs = role.repair_output(output, request.inputs)
    if role.choices:
        checked = check_choices(output, role.choices(request.inputs))
        if isinstance(checked, InvalidOutput):
            return checked
        output, repairs = checked[0], (*repairs, *checked[1])
    if not repairs:
        return read
    writes = prompt_format.write if prompt_format else None
    text = writes(output, request.inputs) if writes else output.model_dump_json()
    return ReadOutput(output, text, (*read.repairs, *repairs))
