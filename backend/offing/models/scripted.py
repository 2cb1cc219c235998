"""Engine for tests with scripted outputs, at no cost and without a model.

Options of the engine config: `outputs` (JSON objects; turn n gets the nth, later turns the last),
`vary_nonce` (another nonce at every call), `delay_ms`, `usage` (charged per call), and `failures`
by turn. `cases` have precedence over turns: the first whose `contains` is part of the prompt's last
message gives the output. With `record_text`, prompt and text are recorded as for a model. With
`revises`, a draft with problems goes back to the script. `{turn}` and `{nonce}` are replaced in
strings. The engine keeps no state, so a repeated turn in another process gets the same output,
unless the nonce varies.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from offing.core.model import (
    EngineConfig,
    EngineFailure,
    EngineResponse,
    FailedAttempt,
    FailureKind,
    InvalidOutput,
    Usage,
)
from offing.models.engine import RoleRequest
from offing.models.reservation import reserve_usage
from offing.models.structured_output import parse_output


class ScriptedUsage(BaseModel, frozen=True, extra="forbid"):
    """Usage that each call reserves and charges."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: Decimal = Decimal()


class ScriptedFailure(BaseModel, frozen=True, extra="forbid"):
    """Failure at a turn."""

    kind: FailureKind = FailureKind.OVERLOADED
    message: str = "scripted"
    retry_after: float | None = None
    recovers: bool = False
    """If true, a failed attempt is recorded and the response follows."""


class ScriptedCase(BaseModel, frozen=True, extra="forbid"):
    """Output for prompts that contain a text, in any turn."""

    contains: str = Field(min_length=1)
    """Text that the prompt's last message must contain."""
    answer: dict[str, Any]


class Script(BaseModel, frozen=True, extra="forbid"):
    """Options of an engine config for the scripted engine."""

    answers: list[dict[str, Any]] = Field(default=[], min_length=1, validate_default=True)
    vary: bool = False
    delay_ms: int = Field(default=0, ge=0)
    usage: ScriptedUsage = ScriptedUsage()
    fail: dict[int, ScriptedFailure] = {}
    """Failures by turn."""
    cases: list[ScriptedCase] = []
    speaks: bool = False
    revises: bool = False
    """Whether a draft with problems goes back to the script, as it does to a model."""


def _nonce() -> str:
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class ScriptedEngine:
    """Engine for tests. `draw_nonce` returns the nonces of scripts with `vary_nonce`."""

    draw_nonce: Callable[[], str] = _nonce

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the scripted response.

        The failure is BAD_REQUEST if the options are not a script, and INVALID_OUTPUT if the output does
        not fit the role.
        """
        script = parse_script(request.engine_config)
        if isinstance(script, EngineFailure):
            return script
        if script.delay_ms:
            await asyncio.sleep(script.delay_ms / 1000)
        usage = Usage(**script.usage.model_dump())
        if not usage.tokens and not usage.cost_usd:
            return self._build_response(script, request, usage)
        async with reserve_usage(request.meter, usage.tokens, usage.cost_usd) as reservation:
            if reservation.denied_by is not None:
                return EngineFailure(
                    FailureKind.BUDGET_EXHAUSTED, "No budget left for this call.", stop_reason=reservation.denied_by
                )
            reservation.usage = usage
            return self._build_response(script, request, usage)

    def _build_response(self, script: Script, request: RoleRequest, usage: Usage) -> EngineResponse | EngineFailure:
        failure = script.fail.get(request.turn)
        if failure is not None and not failure.recovers:
            return EngineFailure(failure.kind, failure.message, usage=usage, retry_after_seconds=failure.retry_after)
        text = json.dumps(self._build_output(script, request), ensure_ascii=False)
        output = parse_output(text, request.role.output)
        if isinstance(output, InvalidOutput):
            return EngineFailure(FailureKind.INVALID_OUTPUT, f"{request.role.name}: {output.problem}", usage=usage)
        attempts = (FailedAttempt(failure.kind, failure.message),) if failure is not None else ()
        if script.speaks:
            messages, native = request.role.render(request.inputs), request.role.native_chat
            text = native.render_output(output) if native else text
            return EngineResponse(
                output=output, text=text, model="scripted", messages=messages, usage=usage, attempts=attempts
            )
        return EngineResponse(output=output, text=text, model="scripted", usage=usage, attempts=attempts)

    def _build_output(self, script: Script, request: RoleRequest) -> Any:
        answer = _find_case(script, request) or script.answers[min(max(request.turn, 1), len(script.answers)) - 1]
        nonce = self.draw_nonce() if script.vary else _derive_nonce(request)
        return _substitute(answer, str(request.turn), nonce)


def create_engine(_env: Mapping[str, str]) -> ScriptedEngine:
    """Create the engine. It reads no environment variables."""
    return ScriptedEngine()


def parse_script(engine_config: EngineConfig) -> Script | EngineFailure:
    """Parse the options as a script, or return BAD_REQUEST that names the first invalid field."""
    try:
        return Script.model_validate(engine_config.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, ("options", *first["loc"])))
        return EngineFailure(FailureKind.BAD_REQUEST, f"{location}: {first['msg']}. Correct the script.")


def _find_case(script: Script, request: RoleRequest) -> dict[str, Any] | None:
    """Return the output of the case that matches the prompt's last message, or `None`."""
    if not script.cases:
        return None
    last = request.role.render(request.inputs)[-1].text
    return next((case.answer for case in script.cases if case.contains in last), None)


def _derive_nonce(request: RoleRequest) -> str:
    return blake2b(f"{request.seed}:{request.role.name}:{request.turn}".encode(), digest_size=4).hexdigest()


def _substitute(value: Any, turn: str, nonce: str) -> Any:
    match value:
        case str():
            return value.replace("{turn}", turn).replace("{nonce}", nonce)
        case dict():
            return {key: _substitute(item, turn, nonce) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_substitute(item, turn, nonce) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
