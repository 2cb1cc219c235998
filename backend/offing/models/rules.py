"""The engine of rules that are made for one environment: it calls the function that a role carries under a name.

Knows no role and no environment. Where the role has a form that can be written, the answer leaves the text that a model
would have written, so that it can be imitated. Nothing is sent anywhere, and nothing is spent.
"""

from typing import Any

from pydantic import BaseModel

from offing.core.model import Answer, EngineFailure, FailureKind
from offing.models.engine import RoleRequest
from offing.sdk.form import Form
from offing.sdk.role import Seat


class RulesEngine:
    """`choice.model` names the rule; `choice.form` the form that its answer is written in, if any."""

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """UNKNOWN_ENGINE: the role has no such rule. BAD_REQUEST: it has no such form. Raises what the rule raises."""
        role, choice = request.role, request.choice
        rule = role.rules.get(choice.model)
        if rule is None:
            known = ", ".join(sorted(role.rules)) or "none"
            return EngineFailure(
                FailureKind.UNKNOWN_ENGINE, f"The role {role.name!r} has no rule {choice.model!r}. Its rules: {known}."
            )
        form = role.form(choice.form)
        if choice.form and form is None:
            known = ", ".join(f.name for f in role.forms) or "none"
            message = f"The role {role.name!r} has no form {choice.form!r}. Its forms: {known}."
            return EngineFailure(FailureKind.BAD_REQUEST, message)
        output = rule(request.given, Seat(request.seed, request.turn))
        if not isinstance(output, role.output):
            raise TypeError(f"{role.name}: the rule {choice.model!r} returned {type(output).__name__}")
        return _written(output, request.given, form)


def _written(output: BaseModel, given: BaseModel, form: Form[Any, Any] | None) -> Answer:
    if form is None or form.write is None:
        return Answer(output=output)
    text = form.write(output, given)
    return Answer(output=output, text=text, messages=form.render(given), spans=form.spans(text))
