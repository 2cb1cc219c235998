"""Which address a call may go to, and which key may go there.

A choice can come from whoever starts a run, the environment only from whoever runs the installation. So an address in a
choice is followed only to this machine or to one that the environment names, and a key from the environment is sent
only where the environment says: to the same server, and to the same path or below it, because one server may serve
several teams.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from offing.core.model import EngineChoice, EngineFailure, FailureKind
from offing.models.addresses import ApiBase, is_loopback, parse_api_base

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
UNUSABLE = "is no http or https address without credentials, a query, encoded characters or dots as a path"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a call goes. Empty strings: the provider's own address, and the key that litellm finds for it."""

    api_base: str = ""
    api_key: str = ""


def destination(choice: EngineChoice, env: Mapping[str, str]) -> Destination | EngineFailure:
    """BAD_REQUEST: the address is not one that this installation allows."""
    if not choice.api_base:
        return Destination()
    base = parse_api_base(choice.api_base)
    if base is None:
        return _refused(choice, UNUSABLE)
    provider = choice.model.partition("/")[0]
    if _covered(base, [env.get(form.format(provider.upper()), "") for form in _BASES] + _listed(env)):
        return Destination(choice.api_base, env.get(key_variable(provider)) or NO_KEY)
    if is_loopback(base.host):
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
    if wanted == ours:
        return Destination(wanted, key)
    base = parse_api_base(wanted)
    if base is None:
        return _refused(choice, UNUSABLE)
    if _covered(base, [_server(ours), *_listed(env)]):
        return Destination(wanted, key)
    return Destination(wanted) if is_loopback(base.host) else _refused(choice, "is not an allowed address")


def _listed(env: Mapping[str, str]) -> list[str]:
    return env.get(ADDRESSES, "").split(",")


def _covered(base: ApiBase, named: Iterable[str]) -> bool:
    """Whether one of the addresses that the operator named is this one or above it."""
    parsed = (parse_api_base(address.strip()) for address in named if address.strip())
    return any(one is not None and one.covers(base) for one in parsed)


def _server(url: str) -> str:
    """A policy engine's address without the version, which its wire adds."""
    return url.rstrip("/").removesuffix("/v1")


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return KEYS.get(provider, f"{provider.upper()}_API_KEY")


def _refused(choice: EngineChoice, problem: str) -> EngineFailure:
    remedy = f"Leave it out for the provider's own address, or let the operator name it in {ADDRESSES}."
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {choice.api_base!r} {problem}. {remedy}")
