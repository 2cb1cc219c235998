"""Requests and responses of engines, independent of the provider.

These are values for messages, usage, accepted responses, failed attempts and engine configuration.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError

from offing.core.errors import InvalidInput
from offing.core.tokens import CompletionSpan, TokenTrace


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt.

    It is split into parts, so that a part that stays the same between turns is stored once.
    """

    role: str
    """`system`, `user` or `assistant`."""
    parts: tuple[str, ...]
    turn: int = 0
    """Step number of the role call whose completion this assistant message repeats.

    An engine then continues from the same token ids. 0 means that the message has only its text.
    """
    omitted_passages: int = field(default=0, compare=False)
    """Number of retrieved passages that the message says it does not show. It is not sent to the engine."""

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one or more attempts, as reported by the provider."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal = field(default_factory=Decimal)
    priced: bool = True
    """`False` means that the provider's price is unknown, so `cost_usd` is a lower bound."""
    cached_prompt_tokens: int = 0
    """The part of `prompt_tokens` that the provider read from its cache. 0 also means unknown."""
    reasoning_tokens: int = 0
    """The part of `completion_tokens` that the model thought before it answered. 0 also means unknown."""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
            self.priced and other.priced,
            self.cached_prompt_tokens + other.cached_prompt_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def __sub__(self, part: "Usage") -> "Usage":
        """Return the usage that remains without `part`."""
        return Usage(
            self.prompt_tokens - part.prompt_tokens,
            self.completion_tokens - part.completion_tokens,
            self.cost_usd - part.cost_usd,
            self.priced,
            self.cached_prompt_tokens - part.cached_prompt_tokens,
            self.reasoning_tokens - part.reasoning_tokens,
        )


class FailureKind(StrEnum):
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    """HTTP status 5xx, or the connection was refused or closed."""
    TIMEOUT = "timeout"
    AUTHENTICATION_FAILED = "authentication_failed"
    BAD_REQUEST = "bad_request"
    MODEL_UNAVAILABLE = "model_unavailable"
    """The provider does not have this model, or not for this account."""
    CONTEXT_TOO_LONG = "context_too_long"
    CONTENT_FILTERED = "content_filtered"
    INVALID_OUTPUT = "invalid_output"
    """The engine answered, but no attempt had the format that the role requires."""
    THINKING_TOO_LONG = "thinking_too_long"
    """Thinking took the completion tokens of an attempt, so its answer is missing or incomplete."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    UNKNOWN_ENGINE = "unknown_engine"
    UNKNOWN_VERSION = "unknown_version"
    """The engine does not have this policy version and must not answer with another one."""


RETRYABLE_FAILURES = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.TIMEOUT})


@dataclass(frozen=True, slots=True)
class SampledCompletion:
    """A completion with its tokens and the request that produced it."""

    model: str
    messages: tuple[Message, ...]
    """The rendered prompt."""
    sampling: dict[str, Any]
    """Sampling parameters as sent."""
    trace: TokenTrace


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One request to an engine without an accepted response.

    It is recorded, but never trained as an accepted one.
    """

    failure: FailureKind
    message: str
    """First meaningful line of the error, without secrets."""
    text: str = ""
    """Text of the engine, if it wrote something unusable."""
    ms: int = 0
    usage: Usage = field(default_factory=Usage)
    completion: SampledCompletion | None = None
    """The rejected completion with its tokens, which is recorded as a separate role call.

    `None` means that the engine returned no token ids or wrote nothing.
    """
    model: str = ""
    """Name of the engine that was asked, if the engine config has fallbacks. Empty otherwise."""


@dataclass(frozen=True, slots=True)
class InvalidOutput:
    """Reason why a text is not a valid output, worded so that a model can correct itself."""

    problem: str


@dataclass(frozen=True, slots=True)
class EngineResponse:
    """An accepted response of an engine."""

    output: BaseModel
    """The validated value of the role's output type."""
    text: str = ""
    """Text of the engine. Empty for engines that write none."""
    model: str = ""
    messages: tuple[Message, ...] = ()
    """The rendered prompt. Empty for engines that need none."""
    sampling: dict[str, Any] = field(default_factory=dict[str, Any])
    """Sampling parameters as sent, not as configured."""
    usage: Usage = field(default_factory=Usage)
    """Usage of all attempts together."""
    attempts: tuple[FailedAttempt, ...] = ()
    """Failed attempts before this response."""
    trace: TokenTrace | None = None
    """Token trace of the accepted attempt. `None` means that the engine returned no token ids."""
    missing_trace_reason: str = ""
    """Why the token trace is missing although the engine can return one."""
    spans: tuple[CompletionSpan, ...] = ()
    """Labeled ranges of `text`, from the same parse as `output`."""
    fallback: str = ""
    """Name of the fallback that answered. Empty means that the role's own engine answered."""
    passed_over: tuple[FailedAttempt, ...] = ()
    """The last attempt at each engine before the fallback that answered: why it did not."""
    first_text_ms: int | None = None
    """Time from the request of the accepted attempt to its first token, in milliseconds. `None` means that the
    answer was not streamed.
    """
    slot_wait_ms: int = 0
    """Time for which the call waited for a call slot of the provider, in milliseconds. 0 means that one was free."""


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """Failure of a role call. It is a value, not an exception, so that a graph decides how to handle it."""

    kind: FailureKind
    message: str
    usage: Usage = field(default_factory=Usage)
    attempts: tuple[FailedAttempt, ...] = ()
    retry_after_seconds: float | None = None
    """Seconds after which the provider suggests a retry. `None` means that it suggested none."""
    stop_reason: str = ""
    """The StopReason of the limit that was reached, for BUDGET_EXHAUSTED."""
    slot_wait_ms: int = 0
    """As in `EngineResponse`."""


SETTING_SEPARATOR = ";"
"""Separates an engine in a text from its settings."""

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high"]
"""How much a model thinks before it answers. Providers without one of these levels reject it."""

FALLBACK_FAILURES = RETRYABLE_FAILURES | {
    FailureKind.AUTHENTICATION_FAILED,
    FailureKind.MODEL_UNAVAILABLE,
    FailureKind.CONTEXT_TOO_LONG,
}
"""Failures after which the next fallback is tried: another provider or model may not have them."""
MAX_FALLBACKS = 4
"""Maximum number of fallbacks of an engine config."""


class EngineConfig(BaseModel, frozen=True, extra="forbid"):
    """Which engine answers a role, and with which options."""

    engine: str = "extractive"
    """`extractive`, `rules`, `litellm`, `policy` or `scripted`; or `own`, the model that a LangGraph graph brings
    along.
    """
    model: str = ""
    """Model name of the provider for `litellm`, NAME@VERSION for `policy`, name of the rule for `rules`.
    Empty for all other engines.
    """
    prompt_format: str = ""
    """Name of a prompt format of the role, such as `text` or `compact`.

    Empty means `json`, by the schema of the output.
    """
    temperature: float | None = None
    """Sampling temperature. `None` means the provider's default.

    For a policy, `None` means 1, the only value at which logprobs need no correction.
    """
    reasoning_effort: ReasoningEffort | None = None
    """How much the model thinks before it answers. `None` means the provider's default."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Maximum completion tokens of an answer, without thinking. `None` means by the model and the role."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Tokens of the model's context window. `None` means by the model table, or unknown if a run has pinned it."""
    output_tokens: int | None = Field(default=None, ge=1)
    """Maximum tokens that the model can write in one response, including thinking.

    `None` means by the model table, or unknown if a run has pinned it.
    """
    answer_tokens: int | None = Field(default=None, ge=1)
    """The limit of an answer in force. It is set when a run is submitted. `None` means `max_tokens`."""
    thinking_tokens: int | None = Field(default=None, ge=0)
    """Completion tokens that are allowed for thinking in addition to the answer.

    `None` means by the model and `reasoning_effort` until a run pins it, and 0 for older runs.
    """
    timeout_seconds: float | None = Field(default=None, gt=0)
    """Maximum seconds until a response is complete. `None` means 120, or more for long completions."""
    api_base: str = ""
    """URL of another server with the provider's protocol. Empty means the provider's own server."""
    options: dict[str, Any] = {}
    """Options of this engine only, such as the answers of `scripted`."""
    prompt_library: str = ""
    """NAME@VERSION of the prompt library that the role's prompt includes. Empty means none."""
    fallbacks: "tuple[EngineConfig, ...] | None" = None
    """Engine configs of `litellm` that are tried in this order if a provider fails. `None` means that there are none.

    They have the prompt format of the role's engine config and no fallbacks of their own.
    """


_LATER_FIELDS = ("reasoning_effort", "context_tokens", "output_tokens", "answer_tokens", "thinking_tokens", "fallbacks")
"""Fields that engine configs of earlier versions did not have."""
_EARLIER_DEFAULTS: dict[str, Any] = {"max_tokens": 2_048, "timeout_seconds": 120.0}
"""Defaults of fields in earlier versions which are `None` now."""


_CONTAINER_FIELDS = frozenset({"options", "fallbacks"})


def engine_to_json(config: EngineConfig) -> dict[str, Any]:
    """Return an engine config as it is stored. Later fields are left out if they are not set."""
    stored = {
        name: value for name, value in config.model_dump().items() if name not in _LATER_FIELDS or value is not None
    }
    return stored | {"fallbacks": [engine_to_json(one) for one in config.fallbacks]} if config.fallbacks else stored


def engine_from_json(stored: Mapping[str, Any]) -> EngineConfig:
    """Return a stored engine config. Equal ones without options and fallbacks are one object, because lists of runs
    have the same few many times.
    """
    if stored.get("options") or stored.get("fallbacks"):
        return EngineConfig.model_validate(stored)
    return _validate_shared(tuple((name, value) for name, value in stored.items() if name not in _CONTAINER_FIELDS))


@lru_cache(maxsize=1024)
def _validate_shared(fields: tuple[tuple[str, Any], ...]) -> EngineConfig:
    return EngineConfig.model_validate(dict(fields))


def engine_to_digest_json(config: EngineConfig) -> dict[str, Any]:
    """Return an engine config for the digest of a request.

    An unchanged request has the same digest as in earlier versions, so it can be repeated after an upgrade.
    """
    dumped = engine_to_json(config)
    return dumped | {name: value for name, value in _EARLIER_DEFAULTS.items() if dumped[name] is None}


def list_chain(config: EngineConfig) -> tuple[EngineConfig, ...]:
    """Return the engine config and its fallbacks in the order in which they are tried."""
    return (config.model_copy(update={"fallbacks": None}), *(config.fallbacks or ()))


def name_chain(config: EngineConfig) -> tuple[str, ...]:
    """Return the names of the engine and its fallbacks: their models, with the address if two have the same model."""
    chain = list_chain(config)
    models = [one.model for one in chain]
    return tuple(
        f"{one.model} at {one.api_base or 'its own address'}" if models.count(one.model) > 1 else one.model
        for one in chain
    )


def hide_options(config: EngineConfig) -> EngineConfig:
    """Return the engine config without the options of its engine and its fallbacks."""
    if not config.options and not config.fallbacks:
        return config
    fallbacks = config.fallbacks and tuple(hide_options(one) for one in config.fallbacks)
    return config.model_copy(update={"options": {}, "fallbacks": fallbacks})


def get_smallest_window(config: EngineConfig) -> int | None:
    """Return the smallest known context window of an engine and its fallbacks. `None` means that none is known."""
    return min((one.context_tokens for one in list_chain(config) if one.context_tokens is not None), default=None)


def get_smallest_answer(config: EngineConfig) -> int | None:
    """Return the smallest known limit of an answer, in tokens without thinking, of an engine and its fallbacks.

    `None` means that none is known.
    """
    limits = (one.answer_tokens or one.max_tokens for one in list_chain(config))
    return min((limit for limit in limits if limit is not None), default=None)


def describe_engine(config: EngineConfig) -> str:
    """Describe the engine in a few words for the timeline.

    The options are left out, because they may contain whole scripts.
    """
    named = f"{config.engine}:{config.model}" if config.model else config.engine
    named = " or ".join((named, *name_chain(config)[1:]))
    return f"{named} with {config.prompt_library}" if config.prompt_library else named


TEXT_SETTINGS = {
    "library": "prompt_library",
    "max_tokens": "max_tokens",
    "reasoning_effort": "reasoning_effort",
    "context_tokens": "context_tokens",
    "output_tokens": "output_tokens",
}
"""Settings in the text of an engine config, with the names of their fields."""


def parse_engine(text: str) -> EngineConfig:
    """Parse an engine config.

    Accepts `ENGINE`, `ENGINE:MODEL`, `litellm:MODEL@TEMPERATURE` and, with a prompt format of the role,
    `ENGINE+FORMAT:MODEL`. Each of them may be followed by settings such as `;library=NAME@VERSION` or
    `;max_tokens=8000;reasoning_effort=low`. `;fallback=PROVIDER/MODEL` adds a fallback, and the settings after it are
    those of the fallback. Raises InvalidInput that names an invalid setting.

    A model name may itself contain an @, for example before a date. Only a number from 0 to 2 after the
    last @ is a temperature. After the name of a policy it is the version.
    """
    text, *fallbacks = re.split(rf"{SETTING_SEPARATOR}\s*fallback\s*=\s*", text)
    parsed = _parse_one(text)
    if not fallbacks:
        return parsed
    named = (one.strip().removeprefix("litellm:") for one in fallbacks)
    return parsed.model_copy(update={"fallbacks": tuple(_parse_one(f"litellm:{one}") for one in named)})


def _parse_one(text: str) -> EngineConfig:
    text, *settings = text.split(SETTING_SEPARATOR)
    named, _, rest = text.partition(":")
    engine, _, prompt_format = named.partition("+")
    model, at, heat = rest.rpartition("@")
    fields: dict[str, Any] = {"engine": engine, "model": rest, "prompt_format": prompt_format}
    if engine != "policy" and at and re.fullmatch(r"[0-2](\.\d+)?|\.\d+", heat):
        fields |= {"model": model, "temperature": float(heat)}
    return _validate_engine(fields | dict(map(_parse_setting, settings)))


def _parse_setting(text: str) -> tuple[str, str]:
    """Return the field and the value of a setting. Raises InvalidInput."""
    name, _, value = text.partition("=")
    if name.strip() not in TEXT_SETTINGS:
        remedy = f"Use NAME=VALUE with one of: {', '.join((*TEXT_SETTINGS, 'fallback'))}."
        raise InvalidInput("engine", f"there is no setting {name.strip()!r}", remedy)
    return TEXT_SETTINGS[name.strip()], value.strip()


def _validate_engine(fields: dict[str, Any]) -> EngineConfig:
    try:
        return EngineConfig.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        remedy = f"Use {', '.join(get_args(ReasoningEffort))} for the effort, and whole numbers from 1 for tokens."
        raise InvalidInput(str(first["loc"][0]), first["msg"], remedy) from error
