"""Call of an embedding model or a reranker: its endpoint, attempts, waits, and failures with a remedy.

Both are chosen by settings of the operator, so their API base counts as an accepted server. The rules
about keys are those of engines (`offing.models.credentials`).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.models.credentials import ALLOWED_URLS_VARIABLE, EngineEndpoint, key_variable, resolve_endpoint
from offing.models.retry import RetryPolicy
from offing.models.role_call import AttemptFailure, CallSettings
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, open_span

LitellmFunction = Literal["aembedding", "arerank"]

MAX_QUERY_CHARS = 2_000
"""Maximum number of code points of a query that are sent. It is about the limit of small models, 512 tokens."""
MAX_PASSAGE_CHARS = 8_000
"""Maximum number of code points of a passage that are sent. Passages have about 180 words, so only a
passage without spaces reaches it.
"""
BATCH_SIZE_VARIABLE = "OFFING_EMBEDDING_BATCH_SIZE"
MIN_SHORTENED_CHARS = 250
"""A text that a model rejects as too long is not shortened further than this."""

_TOO_LONG = re.compile(r"too (?:long|large|many tokens)|maximum context|context length|less than \d+ tokens", re.I)
_TOO_MANY = re.compile(r"batch size|too many (?:inputs|texts|documents)|max(?:imum)? \d+ (?:inputs|texts)", re.I)
_OPERATIONS = {"aembedding": names.EMBEDDINGS, "arerank": names.RERANK}

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of a call with all its attempts."""

    attempt_seconds: float
    """Maximum time of one attempt."""
    total_seconds: float
    """Maximum time of all attempts and waits together."""
    retry_policy: RetryPolicy


INTERACTIVE_LIMITS = CallLimits(15.0, 20.0, RetryPolicy(max_attempts=2, max_retry_after_seconds=2.0))
"""For a search that waits for the result. Without it, words alone are searched."""
BACKGROUND_LIMITS = CallLimits(60.0, 90.0, RetryPolicy())
"""For each batch of passages."""


@dataclass(frozen=True, slots=True)
class RetrievalModel:
    """An embedding model or a reranker, as the settings name it."""

    setting: str
    """Prefix of its settings, such as `OFFING_EMBEDDING`."""
    noun: str
    """What a message calls it, such as `embedding model`."""
    name: str
    """`provider/model`."""
    api_base: str
    """Empty means the provider's own server."""
    env: Mapping[str, str]
    settings: CallSettings = field(default_factory=CallSettings)
    """Clock, sleep and randomness. The retry policy is that of the limits."""

    @property
    def provider(self) -> str:
        return self.name.partition("/")[0]

    async def call(
        self, function: LitellmFunction, arguments: Mapping[str, Any], limits: CallLimits
    ) -> Any | AttemptFailure:
        """Call the model with the retries of `limits`.

        Return litellm's response, or the last failure with a message that names the model and the remedy.
        """
        engine_config = EngineConfig(engine="litellm", model=self.name, api_base=self.api_base)
        endpoint = resolve_endpoint(engine_config, self.env, set_by_operator=True)
        if isinstance(endpoint, EngineFailure):
            problem = re.sub(r"^(api_base|model):", self._name_setting, endpoint.message)
            return AttemptFailure(endpoint.kind, f"The {self.noun} {self.name} cannot be called. {problem}")
        started, failed = self.settings.clock(), 0
        while True:
            seconds = min(limits.attempt_seconds, limits.total_seconds - (self.settings.clock() - started))
            outcome = await self._send(function, arguments, endpoint, seconds)
            if not isinstance(outcome, AttemptFailure):
                return outcome
            failed += 1
            wait = limits.retry_policy.next_wait_seconds(
                outcome.kind, failed, outcome.retry_after, self.settings.random_float()
            )
            if wait is None or self.settings.clock() - started + wait >= limits.total_seconds:
                return self._add_remedy(outcome, endpoint)
            await self.settings.sleep(wait)

    def reject(self, problem: str, remedy: str) -> AttemptFailure:
        """Return the failure for a response that cannot be used."""
        message = f"The {self.noun} {self.name} sent an unusable response: {problem}. {remedy}"
        return AttemptFailure(FailureKind.INVALID_OUTPUT, message)

    async def _send(
        self, function: LitellmFunction, arguments: Mapping[str, Any], endpoint: EngineEndpoint, seconds: float
    ) -> Any | AttemptFailure:
        """Send one request in its own trace span, without retries."""
        from offing.models.litellm_client import call_litellm  # imports httpx

        sent = {"model": self.name, "timeout": seconds, "num_retries": 0, "max_retries": 0, **arguments}
        if endpoint.api_base:
            sent |= {"api_base": endpoint.api_base, "api_key": endpoint.api_key}
        operation = _OPERATIONS[function]
        attributes: dict[str, names.Attribute] = {
            names.OPERATION_NAME: operation,
            names.PROVIDER_NAME: self.provider,
            names.REQUEST_MODEL: self.name,
        }
        with open_span(f"{operation} {self.name}", attributes) as current:
            try:
                async with asyncio.timeout(seconds):
                    outcome = await call_litellm(function, sent, keyless=endpoint.keyless)
            except TimeoutError:
                outcome = AttemptFailure(FailureKind.TIMEOUT, f"No complete response within {seconds:g} s.")
            if isinstance(outcome, AttemptFailure):
                mark_failed(current, outcome.kind, outcome.message)
        return outcome

    def _add_remedy(self, failure: AttemptFailure, endpoint: EngineEndpoint) -> AttemptFailure:
        """Return the failure with a message that names the model and the remedy."""
        reason = failure.message if failure.message.endswith(".") else f"{failure.message}."
        remedy = self._remedy(failure.kind, endpoint)
        if failure.kind is FailureKind.BAD_REQUEST and _TOO_MANY.search(failure.message):
            remedy = f"Reduce {BATCH_SIZE_VARIABLE}."
        return replace(failure, message=f"The {self.noun} {self.name} failed: {reason} {remedy}")

    def _remedy(self, kind: FailureKind, endpoint: EngineEndpoint) -> str:
        variable = key_variable(self.provider)
        match kind:
            case FailureKind.AUTHENTICATION_FAILED if endpoint.keyless:
                problem = f"No key is sent to {endpoint.api_base}, because it is not in {ALLOWED_URLS_VARIABLE}"
                return f"{problem}. Add it there to send {variable}."
            case FailureKind.AUTHENTICATION_FAILED:
                return f"Set a valid {variable} where Offing runs."
            case FailureKind.RATE_LIMITED:
                return "Try again later, or raise the provider's limit."
            case FailureKind.OVERLOADED | FailureKind.TIMEOUT:
                return f"Check that its server runs, and {self.setting}_API_BASE."
            case _:
                return f"Check {self.setting}_MODEL and {self.setting}_API_BASE."

    def _name_setting(self, field_name: re.Match[str]) -> str:
        return f"{self.setting}_{field_name[1].upper()}:"


async def send_shortened(
    send: Callable[[Sequence[str]], Awaitable[ReplyT | AttemptFailure]], texts: Sequence[str], max_chars: int
) -> ReplyT | AttemptFailure:
    """Send texts of at most `max_chars` code points.

    While the model rejects them as too long, they are sent again with half of the length, because
    providers count tokens and do not tell how many they accept.
    """
    while True:
        outcome = await send([text[:max_chars] for text in texts])
        if not isinstance(outcome, AttemptFailure) or not _is_too_long(outcome):
            return outcome
        max_chars = min(max_chars, max(map(len, texts))) // 2
        if max_chars < MIN_SHORTENED_CHARS:
            return outcome


def _is_too_long(failure: AttemptFailure) -> bool:
    """Return whether a model rejected a text for its length. Not every server has an error code for it."""
    if failure.kind is FailureKind.CONTEXT_TOO_LONG:
        return True
    return failure.kind is FailureKind.BAD_REQUEST and _TOO_LONG.search(failure.message) is not None


def replace_surrogates(text: str) -> str:
    """Return `text` without lone surrogates, which no request can encode."""
    return text.encode("utf-8", "replace").decode()
