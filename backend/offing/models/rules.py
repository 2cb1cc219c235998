"""Engine that calls a rule-based role: a function of the role, written for one environment.

If the role has a prompt format that can be written, the response has the text that a model would
have produced, for SFT. Nothing is sent anywhere and nothing is spent.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from offing.core.model import EngineFailure, EngineResponse, FailureKind
from offing.models.engine import RoleRequest
from offing.models.prompt_formats import select_format
from offing.sdk.prompt_format import PromptFormat
from offing.sdk.role import RuleContext


class RulesEngine:
    """Engine for rules.

    `engine_config.model` names the rule, and `prompt_format` the format of the text, if any.
    """

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the response of the rule.

        The failure is UNKNOWN_ENGINE if the role has no such rule, and BAD_REQUEST if it has no such
        format. Raises what the rule raises.
        """
        role, engine_config = request.role, request.engine_config
        rule = role.rules.get(engine_config.model)
        if rule is None:
            names = ", ".join(sorted(role.rules)) or "none"
            return EngineFailure(
                FailureKind.UNKNOWN_ENGINE,
                f"The role {role.name!r} has no rule {engine_config.model!r}. Its rules: {names}.",
            )
        prompt_format = select_format(request)
        if isinstance(prompt_format, EngineFailure):
            return prompt_format
        output = rule(request.inputs, RuleContext(request.seed, request.turn))
        if not isinstance(output, role.output):
            raise TypeError(f"{role.name}: the rule {engine_config.model!r} returned {type(output).__name__}")
        return _render_output(output, request.inputs, prompt_format)


def create_engine(_env: Mapping[str, str]) -> RulesEngine:
    """Create the engine. It reads no environment variables."""
    return RulesEngine()


def _render_output(
    output: BaseModel, inputs: BaseModel, prompt_format: PromptFormat[Any, Any] | None
) -> EngineResponse:
    if prompt_format is None or prompt_format.write is None:
        return EngineResponse(output=output)
    text = prompt_format.write(output, inputs)
    return EngineResponse(
        output=output, text=text, messages=prompt_format.render(inputs), spans=prompt_format.spans(text)
    )
