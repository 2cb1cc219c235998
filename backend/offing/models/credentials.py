"""Which address a call may go to, and which key may go there.

A choice can come from whoever starts a run, the environment only from whoever runs the installation. So a choice is
followed only to an address that the operator has named in the environment or accepted once (`offing.models.accepted`),
this machine's own ports included. A key from the environment is sent only where the environment says: to the same
server, and to the same path or below it, because one server may serve several teams. litellm reads further secrets for
some providers whatever key it is given, so a server that was only accepted is asked through those that have none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from offing.core.errors import OffingError
from offing.core.model import EngineChoice, EngineFailure, FailureKind
from offing.models.accepted import is_accepted
from offing.models.addresses import ApiBase, parse_api_base

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
LOCAL = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "hosted_vllm": "http://127.0.0.1:8000/v1",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "lemonade": "http://127.0.0.1:8000/api/v1",
    "docker_model_runner": "http://127.0.0.1:22088/engines/llama.cpp",
    "langgraph": "http://127.0.0.1:2024",
    "langflow": "http://127.0.0.1:7860",
    "xinference": "http://127.0.0.1:9997/v1",
}
"""Providers that are asked on this machine when nothing names another place, and where they listen by themselves."""
KEYLESS = frozenset(LOCAL) | {"openai", "text-completion-openai", "custom_openai", "litellm_proxy"}
"""Providers whose only credential is the key that they are given: through these alone a server that the operator has
accepted, and named nowhere, is asked."""
_PAST_BASE = frozenset({"databricks"})
"""Providers that send a secret to the root of a base's server: their own variable must name it."""
_SAME_VARIABLES = {"ollama_chat": "ollama", "text-completion-openai": "openai", "azure_text": "azure"}
NO_KEY = "none"
"""Sent where no key is due; servers without keys ignore it, and client libraries insist on one."""
UNUSABLE = "is no http or https address without credentials, a query, encoded characters or dots as a path"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a call goes. Empty strings: the provider's own address, and the key that litellm finds for it."""

    api_base: str = ""
    api_key: str = ""
    keyless: bool = False
    """The server was only accepted: nothing that the environment says of an account goes there."""


def destination(choice: EngineChoice, env: Mapping[str, str]) -> Destination | EngineFailure:
    """BAD_REQUEST: the address is not one that this installation allows."""
    provider = choice.model.partition("/")[0]
    named = named_bases(provider, env)
    if not choice.api_base:
        return _by_itself(choice, provider, named, env)
    base = parse_api_base(choice.api_base)
    if base is None:
        return _refused(choice, UNUSABLE)
    if _covered(base, named if provider in _PAST_BASE else [*named, *_listed(env)]):
        return Destination(choice.api_base, _key(provider, env))
    if provider not in KEYLESS:
        return _needs_own_base(choice, provider)
    return _if_accepted(choice, choice.api_base, base, env)


def named_bases(provider: str, env: Mapping[str, str]) -> list[str]:
    """Addresses that the environment names for a provider; where it names several, the first counts."""
    named = (env.get(form.format(_variable_prefix(provider)), "").strip() for form in _BASES)
    return [address for address in named if address]


def _by_itself(
    choice: EngineChoice, provider: str, named: list[str], env: Mapping[str, str]
) -> Destination | EngineFailure:
    """Where a choice without an address goes. litellm does not read every spelling of a provider that listens on this
    machine, and asks its usual port then, so it is told the address."""
    if provider not in LOCAL:
        return Destination()
    if named:
        return Destination(named[0], _key(provider, env))
    return _on_this_machine(choice, LOCAL[provider], env)


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
    return _if_accepted(choice, wanted, base, env, "")


def _if_accepted(
    choice: EngineChoice, address: str, base: ApiBase, env: Mapping[str, str], key: str = NO_KEY
) -> Destination | EngineFailure:
    try:
        if is_accepted(base, env):
            return Destination(address, key, keyless=True)
    except OffingError as error:
        return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {error}")
    return _refused(choice, "is not a server that the operator of this installation has accepted")


def _on_this_machine(choice: EngineChoice, address: str, env: Mapping[str, str]) -> Destination | EngineFailure:
    """A provider that listens on this machine by itself, where the environment names no other place."""
    base = parse_api_base(address)
    assert base is not None
    if _covered(base, _listed(env)):
        return Destination(address, _key(choice.model.partition("/")[0], env))
    found = _if_accepted(choice, address, base, env)
    if isinstance(found, Destination):
        return found
    problem = f"{choice.model!r} is asked at {address}, a server on this machine that nobody has accepted"
    return EngineFailure(FailureKind.BAD_REQUEST, f"model: {problem}. {accept_remedy(address)}")


def accept_remedy(address: str) -> str:
    """What the operator does once, so that runs may use a server."""
    return f"Run `offing engine accept {address}` once where the workers run, or name it in {ADDRESSES}."


def _listed(env: Mapping[str, str]) -> list[str]:
    return env.get(ADDRESSES, "").split(",")


def _covered(base: ApiBase, named: Iterable[str]) -> bool:
    """Whether one of the addresses that the operator named is this one or above it."""
    parsed = (parse_api_base(address.strip()) for address in named if address.strip())
    return any(one is not None and one.covers(base) for one in parsed)


def _server(url: str) -> str:
    """A policy engine's address without the version, which its wire adds."""
    return url.rstrip("/").removesuffix("/v1")


def _key(provider: str, env: Mapping[str, str]) -> str:
    return env.get(key_variable(provider)) or NO_KEY


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return KEYS.get(provider, f"{_variable_prefix(provider)}_API_KEY")


def _variable_prefix(provider: str) -> str:
    """What a provider's variables begin with, as litellm reads them."""
    return _SAME_VARIABLES.get(provider, provider).upper()


def _refused(choice: EngineChoice, problem: str) -> EngineFailure:
    remedy = f"Leave it out for the provider's own address. {accept_remedy('ADDRESS')}"
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {choice.api_base!r} {problem}. {remedy}")


def _needs_own_base(choice: EngineChoice, provider: str) -> EngineFailure:
    own = _BASES[0].format(_variable_prefix(provider))
    problem = f"{choice.api_base!r} is not named in {own}, and {provider} is asked with secrets from the environment"
    remedy = f"Write openai/MODEL for a server that speaks OpenAI's API, or set {own} where the workers run."
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {problem}. {remedy}")
