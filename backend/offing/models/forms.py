"""In which form a role is asked, and how its answer is read: one of the role's own forms, or JSON by its schema.

The only home of that choice. Knows no wire.
"""

from typing import Any

from offing.core.model import EngineFailure, FailureKind, Unusable
from offing.core.tokens import TextSpan
from offing.models.engine import RoleRequest
from offing.models.structured import parse_output
from offing.sdk.form import Form

PLAIN = "plain"
"""The form for models without tool calling."""

COMPACT = "compact"
"""The form for small planners, whose words have no correction in them: what cannot be read is sampled again."""

RoleForm = Form[Any, Any]


def asked_form(request: RoleRequest, otherwise: str = "") -> RoleForm | EngineFailure | None:
    """The form that the choice names, else the role's form `otherwise` where it has one. None: JSON by the schema.

    BAD_REQUEST: the role has no form of that name.
    """
    role, wanted = request.role, request.choice.form
    form = role.form(wanted or otherwise)
    if wanted and form is None:
        known = ", ".join(f.name for f in role.forms) or "none"
        message = f"form: the role {role.name!r} has no form {wanted!r}. Its forms: {known}."
        return EngineFailure(FailureKind.BAD_REQUEST, message)
    return form


def read(form: RoleForm | None, text: str, request: RoleRequest) -> Any | Unusable:
    """A completion as the role's output."""
    if "\x00" in text:
        return Unusable("It holds a NUL character.")
    return form.parse(text, request.given) if form else parse_output(text, request.role.output)


def spans_of(form: RoleForm | None, text: str) -> tuple[TextSpan, ...]:
    """What the stretches of an accepted completion are. Empty: its form does not say."""
    return form.spans(text) if form else ()


def ended_at(form: RoleForm | None, text: str) -> str:
    """A completion up to the first of the form's stop strings, that string included."""
    found = [(at, stop) for stop in (form.stop if form else ()) if (at := text.find(stop)) >= 0]
    if not found:
        return text
    at, stop = min(found, key=lambda one: (one[0], -len(one[1])))
    return text[: at + len(stop)]
