"""Decide to which address an engine's call may go, and which API key may be sent there.

An engine config can come from any user who starts a run, but the environment only from the operator. Calls therefore go
only to addresses that the operator has set in the environment or accepted (`offing.models.accepted_servers`). This
includes the ports of this machine. A key from the environment is sent only to the server in the environment, and only
to the same path or below it, because one server may serve several teams. litellm reads further secrets for some
providers, regardless of the key that is passed, so a server that was only accepted is called through providers that
have none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offing.core.errors import OffingError
from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.models.accepted_servers import is_accepted
from offing.models.api_base import ApiBase, parse_api_base
from offing.models.call_limits import CallLimit

ALLOWED_URLS_VARIABLE = "OFFING_ALLOWED_ENGINE_URLS"
"""Environment variable with the API bases that engine configs may name, separated by commas. The
provider's key is sent there.
"""

ENGINE_URL_VARIABLE = "OFFING_ENGINE_URL"
"""Environment variable with the URL of the policy engine: `http://HOST:PORT`, `https://…` or
`unix:///PATH`.
"""
ENGINE_KEY_VARIABLE = "OFFING_ENGINE_KEY"
"""Environment variable with the bearer token of the policy engine."""

_BASE_VARIABLE_PATTERNS = ("{}_API_BASE", "{}_BASE_URL")
KEY_VARIABLES = {
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
"""Common providers by their names in litellm, with the environment variable of each provider's key."""
LOCAL_API_BASES = {
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
    "infinity": "http://127.0.0.1:7997",
}
"""Providers that run on this machine by default, with their default URLs."""
KEYLESS_PROVIDERS = frozenset(LOCAL_API_BASES) | {"openai", "text-completion-openai", "custom_openai", "litellm_proxy"}
"""Providers whose only credential is the key they are given. Only these may be used with a server that
is accepted but not configured.
"""
_FIXED_BASE_PROVIDERS = frozenset({"databricks"})
"""Providers that send a secret to the root of the server. Their own variable must name the base."""
_VARIABLE_ALIASES = {"ollama_chat": "ollama", "text-completion-openai": "openai", "azure_text": "azure"}
PLACEHOLDER_KEY = "none"
"""Sent where no key is needed. Servers without keys ignore it, and client libraries require one."""
INVALID_BASE_MESSAGE = (
    "must be an http or https address without credentials, a query, encoded characters or dots in its path"
)


@dataclass(frozen=True, slots=True)
class EngineEndpoint:
    """URL and key of an engine. Empty strings mean the provider's own URL and the key that litellm finds."""

    api_base: str = ""
    api_key: str = field(default="", repr=False)
    keyless: bool = False
    """The server was only accepted, so no account data of the environment is sent to it."""
    stored_name: str = ""
    """Name of the stored provider that the endpoint belongs to. Its requests carry no account data of the environment.
    Empty means that the endpoint comes from the environment.
    """
    stored_limit: CallLimit | None = None
    """Limit of concurrent calls of the stored provider. `None` means that it has none."""

    @property
    def stored_key(self) -> str:
        """The key, if it is one that the tenant has stored. Empty otherwise."""
        return self.api_key if self.stored_name and not self.keyless else ""

    def to_arguments(self) -> dict[str, str]:
        """Return the endpoint as arguments of litellm. Empty values are left to litellm."""
        base = {"api_base": self.api_base} if self.api_base else {}
        return base | ({"api_key": self.api_key} if self.api_base or self.api_key else {})


def resolve_endpoint(
    engine_config: EngineConfig, env: Mapping[str, str], *, set_by_operator: bool = False
) -> EngineEndpoint | EngineFailure:
    """Return the endpoint of an engine config.

    The failure is BAD_REQUEST if this installation does not allow its address. `set_by_operator` means
    that the API base comes from a setting, which counts as accepted: it is called without a key unless
    the provider's variable or OFFING_ALLOWED_ENGINE_URLS names it as well.
    """
    provider = engine_config.model.partition("/")[0]
    provider_bases = list_provider_bases(provider, env)
    if not engine_config.api_base:
        return _resolve_default_endpoint(engine_config, provider, provider_bases, env)
    base = parse_api_base(engine_config.api_base)
    if base is None:
        return _base_rejected(engine_config, INVALID_BASE_MESSAGE)
    if _is_covered(
        base, provider_bases if provider in _FIXED_BASE_PROVIDERS else [*provider_bases, *_list_allowed_urls(env)]
    ):
        return EngineEndpoint(engine_config.api_base, _get_key(provider, env))
    if provider not in KEYLESS_PROVIDERS:
        return _base_not_configured(engine_config, provider)
    if set_by_operator:
        return EngineEndpoint(engine_config.api_base, PLACEHOLDER_KEY, keyless=True)
    return _require_accepted(engine_config, engine_config.api_base, base, env)


def list_provider_bases(provider: str, env: Mapping[str, str]) -> list[str]:
    """Return the API bases of a provider in the environment. The first one is used by default."""
    addresses = (env.get(pattern.format(_variable_prefix(provider)), "").strip() for pattern in _BASE_VARIABLE_PATTERNS)
    return [address for address in addresses if address]


def _resolve_default_endpoint(
    engine_config: EngineConfig, provider: str, provider_bases: list[str], env: Mapping[str, str]
) -> EngineEndpoint | EngineFailure:
    """Return the endpoint of an engine config without an API base.

    litellm ignores some spellings of the address of a local provider and uses its default port. So the
    address is passed explicitly.
    """
    if provider not in LOCAL_API_BASES:
        return EngineEndpoint()
    if provider_bases:
        return EngineEndpoint(provider_bases[0], _get_key(provider, env))
    return _resolve_local_endpoint(engine_config, LOCAL_API_BASES[provider], env)


def resolve_policy_endpoint(engine_config: EngineConfig, env: Mapping[str, str]) -> EngineEndpoint | EngineFailure:
    """Return the endpoint of a policy.

    The failure is UNKNOWN_ENGINE if no policy engine is configured, and BAD_REQUEST if the address is
    not allowed. A Unix socket is used only if the environment names it, because other programs listen
    on sockets, too.
    """
    configured_url, key = env.get(ENGINE_URL_VARIABLE, "").strip(), env.get(ENGINE_KEY_VARIABLE, "")
    url = engine_config.api_base or configured_url
    if not url:
        remedy = f"Start `offing engine serve`, or set {ENGINE_URL_VARIABLE} where the workers run."
        return EngineFailure(FailureKind.UNKNOWN_ENGINE, f"No policy engine is configured. {remedy}")
    if url == configured_url:
        return EngineEndpoint(url, key)
    base = parse_api_base(url)
    if base is None:
        return _base_rejected(engine_config, INVALID_BASE_MESSAGE)
    if _is_covered(base, [_strip_version(configured_url), *_list_allowed_urls(env)]):
        return EngineEndpoint(url, key)
    return _require_accepted(engine_config, url, base, env, "")


def is_named_by_operator(base: ApiBase, provider: str, env: Mapping[str, str]) -> bool:
    """Return whether the environment names this API base for a provider, or the operator has accepted it.

    Raises Conflict if the file of accepted servers cannot be read.
    """
    named = [*list_provider_bases(provider, env), *_list_allowed_urls(env)]
    return _is_covered(base, named) or is_accepted(base, env)


def find_base_variable(provider: str, env: Mapping[str, str]) -> str | None:
    """Return a variable that gives a provider another address than its own. `None` means that none is set."""
    prefix = f"{_variable_prefix(provider)}_"
    names = (name for name, value in env.items() if name.startswith(prefix) and value.strip())
    return next((name for name in names if name.endswith(("_BASE", "_URL", "_ENDPOINT"))), None)


def _require_accepted(
    engine_config: EngineConfig, address: str, base: ApiBase, env: Mapping[str, str], key: str = PLACEHOLDER_KEY
) -> EngineEndpoint | EngineFailure:
    try:
        if is_accepted(base, env):
            return EngineEndpoint(address, key, keyless=True)
    except OffingError as error:
        return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {error}")
    return _base_rejected(engine_config, "is not a server that the operator of this installation has accepted")


def _resolve_local_endpoint(
    engine_config: EngineConfig, address: str, env: Mapping[str, str]
) -> EngineEndpoint | EngineFailure:
    """Return the default endpoint of a provider that runs on this machine."""
    base = parse_api_base(address)
    assert base is not None
    if _is_covered(base, _list_allowed_urls(env)):
        return EngineEndpoint(address, _get_key(engine_config.model.partition("/")[0], env))
    endpoint = _require_accepted(engine_config, address, base, env)
    if isinstance(endpoint, EngineEndpoint):
        return endpoint
    problem = f"{engine_config.model!r} is served at {address}, a server on this machine that is not accepted"
    return EngineFailure(FailureKind.BAD_REQUEST, f"model: {problem}. {render_accept_remedy(address)}")


def render_accept_remedy(address: str) -> str:
    """Return the instruction to accept a server."""
    return f"Run `offing engine accept {address}` once where the workers run, or add it to {ALLOWED_URLS_VARIABLE}."


def _list_allowed_urls(env: Mapping[str, str]) -> list[str]:
    return env.get(ALLOWED_URLS_VARIABLE, "").split(",")


def _is_covered(base: ApiBase, addresses: Iterable[str]) -> bool:
    """Return whether an address of the operator is equal to this base or above it."""
    parsed = (parse_api_base(address.strip()) for address in addresses if address.strip())
    return any(one is not None and one.covers(base) for one in parsed)


def _strip_version(url: str) -> str:
    """Return the URL of a policy engine without `/v1`, which the protocol adds."""
    return url.rstrip("/").removesuffix("/v1")


def _get_key(provider: str, env: Mapping[str, str]) -> str:
    return env.get(key_variable(provider)) or PLACEHOLDER_KEY


def key_variable(provider: str) -> str:
    """Return the environment variable of a provider's key."""
    return KEY_VARIABLES.get(provider, f"{_variable_prefix(provider)}_API_KEY")


def _variable_prefix(provider: str) -> str:
    """Return the prefix of a provider's environment variables, as litellm reads them."""
    return _VARIABLE_ALIASES.get(provider, provider).upper()


def _base_rejected(engine_config: EngineConfig, problem: str) -> EngineFailure:
    remedy = f"Omit it to use the provider's address. {render_accept_remedy('ADDRESS')}"
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {engine_config.api_base!r} {problem}. {remedy}")


def _base_not_configured(engine_config: EngineConfig, provider: str) -> EngineFailure:
    own = _BASE_VARIABLE_PATTERNS[0].format(_variable_prefix(provider))
    problem = f"{engine_config.api_base!r} is not in {own}, and {provider} is called with secrets from the environment"
    remedy = f"Use openai/MODEL for a server with OpenAI's API, or set {own} where the workers run."
    return EngineFailure(FailureKind.BAD_REQUEST, f"api_base: {problem}. {remedy}")
