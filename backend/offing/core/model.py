"""What an engine is asked and what it gives back, whichever engine it is.

Knows no provider. A role call's accepted answer, its failed attempts, tokens and money are all values here.
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from offing.core.tokens import TextSpan, TokenTrace


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt, in parts, so that a part that stays the same from turn to turn is stored once."""

    role: str
    """system, user or assistant."""
    parts: tuple[str, ...]
    turn: int = 0
    """Seq of the turn whose completion this assistant message repeats, so that an engine goes on from its very tokens.
    0: the text stands for itself."""

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one or more attempts, from the provider's own figures."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: Decimal = field(default_factory=Decimal)
    priced: bool = True
    """False: the provider's price is not known, so `usd` is a lower bound."""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.usd + other.usd,
            self.priced and other.priced,
        )

    def __sub__(self, part: "Usage") -> "Usage":
        """What is left without a part of it."""
        return Usage(
            self.prompt_tokens - part.prompt_tokens,
            self.completion_tokens - part.completion_tokens,
            self.usd - part.usd,
            self.priced,
        )


class FailureKind(StrEnum):
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    """5xx, connection refused or cut."""
    TIMEOUT = "timeout"
    REFUSED_KEY = "refused_key"
    BAD_REQUEST = "bad_request"
    CONTEXT_TOO_LONG = "context_too_long"
    CONTENT_REFUSED = "content_refused"
    INVALID_OUTPUT = "invalid_output"
    """Answered, but never in the form that the role needs, within the re-asks allowed."""
    OUT_OF_BUDGET = "out_of_budget"
    UNKNOWN_ENGINE = "unknown_engine"
    UNKNOWN_VERSION = "unknown_version"
    """The engine does not have this policy version, and answers with no other."""


RETRYABLE = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Sampled:
    """A completion with its tokens, and what it was asked for with."""

    model: str
    messages: tuple[Message, ...]
    """The prompt as rendered."""
    sampling: dict[str, Any]
    """Parameters as sent."""
    trace: TokenTrace


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to an engine that gave no accepted answer. Kept on record, never trained as accepted."""

    failure: FailureKind
    message: str
    """First telling line; secrets removed."""
    text: str = ""
    """What the engine wrote, when it wrote something unusable."""
    ms: int = 0
    usage: Usage = field(default_factory=Usage)
    sampled: Sampled | None = None
    """The same completion whole and token by token, which becomes a turn of its own. None: the engine gives no token
    ids, or wrote nothing."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a text is no answer, said so that a model can correct itself."""

    problem: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An accepted answer."""

    output: BaseModel
    """The validated value of the role's output type."""
    text: str = ""
    """What the engine wrote. Empty for engines that write none."""
    model: str = ""
    messages: tuple[Message, ...] = ()
    """The prompt as rendered. Empty for engines that need none."""
    sampling: dict[str, Any] = field(default_factory=dict[str, Any])
    """Parameters as sent, not as configured."""
    usage: Usage = field(default_factory=Usage)
    """Of all attempts together."""
    attempts: tuple[Attempt, ...] = ()
    """The failed ones before this answer."""
    trace: TokenTrace | None = None
    """The accepted attempt as the sampler saw it. None: the engine gives no token ids."""
    untraced: str = ""
    """Why there is no trace, where the engine could give one."""
    spans: tuple[TextSpan, ...] = ()
    """What the stretches of `text` are, from the parse that made `output`."""


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """No usable answer. A value, so that a graph decides what to do about it."""

    kind: FailureKind
    message: str
    usage: Usage = field(default_factory=Usage)
    attempts: tuple[Attempt, ...] = ()
    retry_after: float | None = None
    """Seconds after which the provider said trying again can help. None: it did not say."""
    stop: str = ""
    """For OUT_OF_BUDGET: the StopReason that was reached."""


LIBRARY_MARK = ";library="


class EngineChoice(BaseModel, frozen=True, extra="forbid"):
    """Which engine answers a role, and how."""

    engine: str = "extractive"
    """extractive, rules, litellm, policy or scripted."""
    model: str = ""
    """litellm: the provider's model name. policy: NAME@VERSION. rules: the rule's name. Empty for the others."""
    form: str = ""
    """Name of the role's form to ask in, such as plain or compact. Empty: JSON by the output's schema."""
    temperature: float | None = None
    """None: the provider's default; for a policy 1, the only one that log-probabilities need no correction for."""
    max_tokens: int = 2048
    """Completion tokens of one attempt."""
    timeout_seconds: float = 120.0
    api_base: str = ""
    """Another server that speaks the provider's wire. Empty: the provider's own."""
    options: dict[str, Any] = {}
    """What only this engine knows, such as the answers of `scripted`."""
    library: str = ""
    """NAME@VERSION of the prompt library that the role's prompt shows. Empty: none."""


def answering(choice: EngineChoice) -> str:
    """Who answers, for a timeline; the options may hold whole scripts, and are left out."""
    named = f"{choice.engine}:{choice.model}" if choice.model else choice.engine
    return f"{named} with {choice.library}" if choice.library else named


def parse_engine(text: str) -> EngineChoice:
    """A choice from `ENGINE`, `ENGINE:MODEL`, `litellm:MODEL@TEMPERATURE`, or with a role's form `ENGINE+FORM:MODEL`;
    each with `;library=NAME@VERSION` after it for a prompt library.

    A model's own name may have an @ in it, such as a date: only 0 to 2 after the last one is a temperature. After a
    policy's name it is the version.
    """
    text, marked, library = text.partition(LIBRARY_MARK)
    if marked:
        return parse_engine(text).model_copy(update={"library": library})
    named, _, rest = text.partition(":")
    engine, _, form = named.partition("+")
    model, at, heat = rest.rpartition("@")
    if engine == "policy" or not at or not re.fullmatch(r"[0-2](\.\d+)?|\.\d+", heat):
        return EngineChoice(engine=engine, model=rest, form=form)
    return EngineChoice(engine=engine, model=model, form=form, temperature=float(heat))
