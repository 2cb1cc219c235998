"""The engine of tests: answers written down beforehand, at no cost and without a model.

`choice.options`: `answers` (JSON objects; turn n gets the nth, later turns the last), `vary` (another nonce at every
call), `delay_ms`, `usage` (booked a call), and `fail`, by turn. `cases` go before the turns: the first whose words
stand in the prompt's last message is the answer. `speaks`: prompt and answer are on record, as a model's are.
In strings, `{turn}` and `{nonce}` are replaced. It keeps no state, so a turn that is asked again in another process
gets the same answer, unless it varies.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from offing.core.model import Answer, Attempt, EngineChoice, EngineFailure, FailureKind, Unusable, Usage
from offing.models.engine import RoleRequest
from offing.models.metering import reserved
from offing.models.structured import parse_output


class ScriptedUsage(BaseModel, frozen=True, extra="forbid"):
    """What each call reserves and books."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: Decimal = Decimal()


class ScriptedFailure(BaseModel, frozen=True, extra="forbid"):
    """What goes wrong at a turn."""

    kind: FailureKind = FailureKind.OVERLOADED
    message: str = "scripted"
    retry_after: float | None = None
    recovers: bool = False
    """True: a failed attempt is on record, and the answer follows."""


class ScriptedCase(BaseModel, frozen=True, extra="forbid"):
    """An answer to certain words, whatever the turn."""

    contains: str = Field(min_length=1)
    """What the prompt's last message must hold."""
    answer: dict[str, Any]


class Script(BaseModel, frozen=True, extra="forbid"):
    """`choice.options` of this engine."""

    answers: list[dict[str, Any]] = Field(default=[], min_length=1, validate_default=True)
    vary: bool = False
    delay_ms: int = Field(default=0, ge=0)
    usage: ScriptedUsage = ScriptedUsage()
    fail: dict[int, ScriptedFailure] = {}
    """By turn."""
    cases: list[ScriptedCase] = []
    speaks: bool = False


def _nonce() -> str:
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class ScriptedEngine:
    """`draw` gives the nonces of scripts that vary."""

    draw: Callable[[], str] = _nonce

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """BAD_REQUEST: the options are no script. INVALID_OUTPUT: the scripted answer is none of the role's."""
        script = script_of(request.choice)
        if isinstance(script, EngineFailure):
            return script
        if script.delay_ms:
            await asyncio.sleep(script.delay_ms / 1000)
        usage = Usage(**script.usage.model_dump())
        if not usage.tokens and not usage.usd:
            return self._reply(script, request, usage)
        async with reserved(request.meter, usage.tokens, usage.usd) as booking:
            if booking.refused is not None:
                return EngineFailure(FailureKind.OUT_OF_BUDGET, "No budget left for this call.", stop=booking.refused)
            booking.used = usage
            return self._reply(script, request, usage)

    def _reply(self, script: Script, request: RoleRequest, usage: Usage) -> Answer | EngineFailure:
        failure = script.fail.get(request.turn)
        if failure is not None and not failure.recovers:
            return EngineFailure(failure.kind, failure.message, usage=usage, retry_after=failure.retry_after)
        text = json.dumps(self._filled(script, request), ensure_ascii=False)
        output = parse_output(text, request.role.output)
        if isinstance(output, Unusable):
            return EngineFailure(FailureKind.INVALID_OUTPUT, f"{request.role.name}: {output.problem}", usage=usage)
        attempts = (Attempt(failure.kind, failure.message),) if failure is not None else ()
        if script.speaks:
            said, native = request.role.render(request.given), request.role.native
            text = native.write(output) if native else text
            return Answer(output=output, text=text, model="scripted", messages=said, usage=usage, attempts=attempts)
        return Answer(output=output, text=text, model="scripted", usage=usage, attempts=attempts)

    def _filled(self, script: Script, request: RoleRequest) -> Any:
        answer = _case(script, request) or script.answers[min(max(request.turn, 1), len(script.answers)) - 1]
        nonce = self.draw() if script.vary else _steady_nonce(request)
        return _substituted(answer, str(request.turn), nonce)


def script_of(choice: EngineChoice) -> Script | EngineFailure:
    """The options as a script. BAD_REQUEST: the first field that cannot be used."""
    try:
        return Script.model_validate(choice.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, ("options", *first["loc"])))
        return EngineFailure(FailureKind.BAD_REQUEST, f"{place}: {first['msg']}. Correct the script.")


def _case(script: Script, request: RoleRequest) -> dict[str, Any] | None:
    """The answer to the prompt's last words. None: no case meets them."""
    if not script.cases:
        return None
    last = request.role.render(request.given)[-1].text
    return next((case.answer for case in script.cases if case.contains in last), None)


def _steady_nonce(request: RoleRequest) -> str:
    return blake2b(f"{request.seed}:{request.role.name}:{request.turn}".encode(), digest_size=4).hexdigest()


def _substituted(value: Any, turn: str, nonce: str) -> Any:
    match value:
        case str():
            return value.replace("{turn}", turn).replace("{nonce}", nonce)
        case dict():
            return {key: _substituted(item, turn, nonce) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_substituted(item, turn, nonce) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
