"""Prompt formats: render a role's prompt and parse its completion, or use JSON with its schema."""

from typing import Any

from offing.core.model import EngineFailure, FailureKind, InvalidOutput
from offing.core.tokens import CompletionSpan
from offing.models.engine import RoleRequest
from offing.models.structured_output import parse_output
from offing.sdk.prompt_format import PromptFormat

JSON = "json"
"""Name of the form in which every role can be asked: JSON by the schema of its output."""

TEXT = "text"
"""Name of the prompt format for models without tool calling."""

COMPACT_FORMATS = frozenset({"compact", "compact-report"})
"""Names of the prompt formats for small policies; with `compact-report`, the policy writes its report, too.

They have no correction message: an invalid completion is sampled again.
"""

RolePromptFormat = PromptFormat[Any, Any]


def select_format(request: RoleRequest, default: str = "") -> RolePromptFormat | EngineFailure | None:
    """Return the prompt format of the engine config, or the role's format `default` if it has one.

    `None` means JSON with a schema, which every role has under the name `json`.
    The failure is BAD_REQUEST if the role has no format of that name.
    """
    role, requested = request.role, request.engine_config.prompt_format
    if requested == JSON:
        return None
    prompt_format = role.find_format(requested or default)
    if requested and prompt_format is None:
        names = ", ".join(f.name for f in role.prompt_formats) or "none"
        message = (
            f"prompt_format: the role {role.name!r} has no prompt format {requested!r}. Its prompt formats: {names}."
        )
        return EngineFailure(FailureKind.BAD_REQUEST, message)
    return prompt_format


def describe_format(prompt_format: RolePromptFormat | None, output_mode: str) -> dict[str, str]:
    """Return what a stored role call says about the format of its completion."""
    return {"prompt_format": prompt_format.name} if prompt_format else {"output_mode": output_mode}


def parse_completion(prompt_format: RolePromptFormat | None, text: str, request: RoleRequest) -> Any | InvalidOutput:
    """Parse a completion as the role's output."""
    if "\x00" in text:
        return InvalidOutput("It holds a NUL character.")
    return prompt_format.parse(text, request.inputs) if prompt_format else parse_output(text, request.role.output)


def label_spans(prompt_format: RolePromptFormat | None, text: str) -> tuple[CompletionSpan, ...]:
    """Return the labeled spans of a valid completion. Empty if its format has no labels."""
    return prompt_format.spans(text) if prompt_format else ()


def cut_at_stop(prompt_format: RolePromptFormat | None, text: str) -> str:
    """Cut a completion after the first stop string of the format."""
    stops = [(at, stop) for stop in (prompt_format.stop if prompt_format else ()) if (at := text.find(stop)) >= 0]
    if not stops:
        return text
    at, stop = min(stops, key=lambda one: (one[0], -len(one[1])))
    return text[: at + len(stop)]
