"""The providers that a tenant can store, as data: their names for people, and what each of them needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offing.models.credentials import KEY_VARIABLES, LOCAL_API_BASES, list_provider_bases
from offing.models.preset_table import PROVIDER_MODELS
from offing.models.stored_provider import PROVIDERS_WITHOUT_ADDRESS, SERVER_PROVIDERS


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A provider that can be stored."""

    name: str
    """litellm's name of the provider."""
    title: str
    key_page: str = ""
    """Page on which its users create keys. Empty means that there is none."""
    suggested_models: tuple[str, ...] = ()
    """Models of the built-in presets by their names at the provider, the small one first."""
    is_server: bool = False
    """It is a server of one's own, whose key is optional."""
    needs_address: bool = False
    """It has no address of its own."""
    default_address: str = ""
    """The address of a server of one's own unless another is stored. Empty means the provider's own."""
    environment_key: bool = False
    """The environment has a key, so its models can be used without storing one."""


_TITLES: Mapping[str, tuple[str, str]] = {
    "openai": ("OpenAI", "https://platform.openai.com/api-keys"),
    "anthropic": ("Anthropic", "https://platform.claude.com/settings/keys"),
    "gemini": ("Google Gemini", "https://aistudio.google.com/apikey"),
    "mistral": ("Mistral", "https://console.mistral.ai/api-keys"),
    "deepseek": ("DeepSeek", "https://platform.deepseek.com/api_keys"),
    "groq": ("Groq", "https://console.groq.com/keys"),
    "openrouter": ("OpenRouter", "https://openrouter.ai/settings/keys"),
    "together_ai": ("Together AI", "https://api.together.ai/settings/api-keys"),
    "xai": ("xAI", "https://console.x.ai"),
    "cohere": ("Cohere", "https://dashboard.cohere.com/api-keys"),
    "ollama_chat": ("Ollama", ""),
    "hosted_vllm": ("vLLM, or any server with the API of OpenAI", ""),
    "lm_studio": ("LM Studio", ""),
    "llamafile": ("llama.cpp or llamafile", ""),
    "lemonade": ("Lemonade", ""),
    "litellm_proxy": ("LiteLLM proxy", ""),
    "ollama": ("Ollama, without its chat API", ""),
}
"""The name for people and the page for keys of each provider that can be stored, in the order of lists."""


def list_provider_kinds(env: Mapping[str, str]) -> Sequence[ProviderKind]:
    """Return the providers that can be stored, those that most people look for first."""
    return [_describe(name, title, key_page, env) for name, (title, key_page) in _TITLES.items()]


def _describe(name: str, title: str, key_page: str, env: Mapping[str, str]) -> ProviderKind:
    models = PROVIDER_MODELS.get(name)
    is_server = name in SERVER_PROVIDERS
    bases = [*list_provider_bases(name, env), LOCAL_API_BASES.get(name, "")] if is_server else [""]
    return ProviderKind(
        name,
        title,
        key_page,
        (models.small, models.large) if models else (),
        is_server,
        name in PROVIDERS_WITHOUT_ADDRESS,
        bases[0],
        bool(env.get(KEY_VARIABLES.get(name, ""))),
    )
