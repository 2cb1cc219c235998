"""Which address a call may go to, and which key may go there.

A choice can come from whoever starts a run, the environment only from whoever runs the installation. So an address in a
choice is followed only to this machine or to one that the environment names, and a key from the environment is sent
only where the environment says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from offing.core.model import EngineChoice, EngineFailure, FailureKind

ADDRESSES = "OFFING_ENGINE_ADDRESSES"
"""Environment: API bases that choices may name, with the provider's key sent there, separated by commas."""

ENGINE_URL = "OFFING_ENGINE_URL"
"""Environment: where the policy engine listens, `http://HOST:PORT`, `https://…` or `unix:///PATH`."""
ENGINE_KEY = "OFFING_ENGINE_KEY"
"""Environment: the bearer token that it wants."""

_BASES = ("{}_API_BASE", "{}_BASE_URL")
KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "groq": "GROQ_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
    "cohere": "COHERE_API_KEY",
}
"""litellm's names of providers that are often used, and the variable that each one's key is read from."""
NO_KEY = "none"
"""Sent where no key is due; servers without keys ignore it, and client libraries insist on one."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a call goes. Empty strings: the provider's own address, and the key that litellm finds for it."""

    api_base: str = ""
    api_key: str = ""


def destination(choice: EngineChoice, env: Mapping[str, str]) -> Destination | EngineFailure:
    """BAD_REQUEST: the address is not one that this installation allows."""
    if not choice.api_base:
        return Destination()
    origin = _origin(choice.api_base)
    if origin is None:
        return _refused(choice, "is no http or https address")
    provider = choice.model.partition("/")[0]
    named = [env.get(form.format(provider.upper()), "") for form in _BASES] + env.get(ADDRESSES, "").split(",")
    if origin in {_origin(address.strip()) for address in named if address.strip()}:
        return Destination(choice.api_base, env.get(key_variable(provider)) or NO_KEY)
    if is_loopback(choice.api_base):
        return Destination(choice.api_base, NO_KEY)
    return _refused(choice, "is not an address that this installation allows")


def policy_destination(choice: EngineChoice, env: Mapping[str, str]) -> Destination | EngineFailure:
    """Where a policy is asked. UNKNOWN_ENGINE: none is set up here. BAD_REQUEST: the address is not allowed.

    A unix socket is followed only where the environment names it, because other programs listen on sockets, too.
    """
    ours, key = env.get(ENGINE_URL, "").strip(), env.get(ENGINE_KEY, "")
    wanted = choice.api_base or ours
    if not wanted:
        remedy = f"Start `offing engine serve`, or set {ENGINE_URL} where the workers run."
        return EngineFailure(FailureKind.UNKNOWN_ENGINE, f"There is no policy engine here. {remedy}")
    origin = _origin(wanted)
    named = {_origin(address.strip()) for address in (ours, *env.get(ADDRESSES, "").split(","))} - {None}
    if wanted == ours or origin in named:
        return Destination(wanted, key)
    return Destination(wanted) if origin and is_loopback(wanted) else _refused(choice, "is not an allowed address")


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return KEYS.get(provider, f"{provider.upper()}_API_KEY")


def is_loopback(address: str) -> bool:
    """Whether `address` names this machine by number or as localhost. Nothing is resolved."""
    host = (urlsplit(address).hostname or "").lower()
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _origin(address: str) -> tuple[str, str, int] | None:
    """Scheme, host and port. None: not an address that a call can go to."""
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port


def _refused(choice: EngineChoice, problem: str) -> EngineFailure:
    remedy = f"Leave it out for the provider's own address, or let the operator name it in {ADDRESSES}."
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {choice.api_base!r} {problem}. {remedy}")
