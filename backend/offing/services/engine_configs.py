"""Choose the engine of each role, and check the engines that a request names before anything is stored.

The worker checks them again before each call. Checking here gives the caller an error at once.
"""

from collections.abc import Mapping
from typing import Any

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import MAX_FALLBACKS, EngineConfig, EngineFailure, list_chain, parse_engine
from offing.models.credentials import EngineEndpoint, resolve_endpoint, resolve_policy_endpoint
from offing.models.engine import ENGINES
from offing.models.litellm_request import parse_options
from offing.models.model_limits import RoleLimits, find_limit_problem, resolve_model_limits
from offing.models.preset_table import Preset
from offing.models.prompt_formats import JSON
from offing.models.stored_provider import StoredProvider, resolve_stored_endpoint, use_litellm_name
from offing.sdk import Graph, Role
from offing.tools.environment import extend_role

StoredProviders = Mapping[str, StoredProvider]
"""The stored providers of a tenant by name, from `offing.services.providers.list_stored`."""
NO_PROVIDERS: StoredProviders = {}


def check_engines(
    engines: Mapping[str, EngineConfig], field: str = "engines", stored: StoredProviders = NO_PROVIDERS
) -> None:
    """Check the engine of each role with `check_engine`."""
    for role, choice in engines.items():
        check_engine(f"{field}.{role}", choice, stored)


def check_engine(field: str, engine_config: EngineConfig, stored: StoredProviders = NO_PROVIDERS) -> None:
    """Raise InvalidInput for a limit or reasoning effort that the model cannot have, and for an address that the
    operator has neither configured nor accepted.
    """
    _check_chain(field, engine_config)
    for number, fallback in enumerate(engine_config.fallbacks or ()):
        _check_fallback(f"{field}.fallbacks.{number}", engine_config, fallback)
        check_engine(f"{field}.fallbacks.{number}", fallback, stored)
    if (contradiction := find_limit_problem(use_litellm_name(engine_config, stored))) is not None:
        raise InvalidInput(f"{field}.{contradiction.field}", contradiction.problem, contradiction.remedy)
    if engine_config.engine == "policy":
        endpoint = resolve_policy_endpoint(engine_config, environment.VARIABLES) if engine_config.api_base else None
    else:
        is_called = engine_config.engine == "litellm" or engine_config.api_base
        endpoint = resolve_engine_endpoint(engine_config, stored) if is_called else None
    if isinstance(endpoint, EngineFailure):
        field_name, _, reason = endpoint.message.partition(": ")
        problem, _, remedy = reason.partition(". ")
        raise InvalidInput(f"{field}.{field_name}", problem, remedy)


def _check_chain(field: str, engine_config: EngineConfig) -> None:
    """Raise InvalidInput for too many fallbacks, and for one that would fail as an engine before it does."""
    called = [(one.model, one.api_base) for one in list_chain(engine_config)]
    if len(called) - 1 > MAX_FALLBACKS:
        raise InvalidInput(f"{field}.fallbacks", f"has {len(called) - 1} engines", f"Use at most {MAX_FALLBACKS}.")
    for number, one in enumerate(called[1:]):
        if one in called[: number + 1]:
            problem = f"{one[0]!r} is tried before this fallback"
            raise InvalidInput(f"{field}.fallbacks.{number}.model", problem, "Name another model or provider.")


def _check_fallback(field: str, engine_config: EngineConfig, fallback: EngineConfig) -> None:
    if engine_config.engine != "litellm" or fallback.engine != "litellm":
        raise InvalidInput(f"{field}.engine", "only litellm has fallbacks, and only of litellm", "Leave it out.")
    if isinstance(problem := parse_options(fallback), EngineFailure):
        name, _, reason = problem.message.partition(": ")
        cause, _, remedy = reason.partition(". ")
        raise InvalidInput(f"{field}.{name}", cause, remedy)
    if fallback.fallbacks:
        raise InvalidInput(f"{field}.fallbacks", "a fallback has no fallbacks", "Put all of them into one list.")
    if fallback.prompt_format not in {"", engine_config.prompt_format}:
        raise InvalidInput(f"{field}.prompt_format", "differs from that of the role's engine", "Leave it out.")
    if fallback.prompt_library:
        remedy = "Leave it out: the library of the role's engine holds for its fallbacks."
        raise InvalidInput(f"{field}.prompt_library", "a fallback has no library of its own", remedy)


def resolve_engine_endpoint(engine_config: EngineConfig, stored: StoredProviders) -> EngineEndpoint | EngineFailure:
    """Return the endpoint of a call through litellm, with a stored provider if the model names one."""
    provider = stored.get(engine_config.model.partition("/")[0])
    if provider is None or engine_config.engine != "litellm":
        return resolve_endpoint(engine_config, environment.VARIABLES)
    return resolve_stored_endpoint(engine_config, provider, environment.VARIABLES)[1]


def choose_engines(
    graph: Graph,
    requested: Mapping[str, EngineConfig],
    default: EngineConfig,
    stored: StoredProviders = NO_PROVIDERS,
) -> dict[str, EngineConfig]:
    """Return the engine of each role of a graph, with its token limits.

    `stored` are the providers that the tenant has stored. Raises InvalidInput as `select_engines`, and for an engine
    at an address that is not allowed.
    """
    return complete_engines(graph, requested, select_engines(graph, requested, default), stored)


def complete_engines(
    graph: Graph,
    requested: Mapping[str, EngineConfig],
    chosen: Mapping[str, EngineConfig],
    stored: StoredProviders,
) -> dict[str, EngineConfig]:
    """Return the engines that `select_engines` chose, checked and with their token limits."""
    check_engines(chosen, stored=stored)
    roles = {role.name: role for role in graph.list_askable_roles(requested)}
    return {name: resolve_limits(roles[name], choice, stored) for name, choice in chosen.items()}


def choose_preset_engines(preset: Preset, graph: Graph) -> dict[str, EngineConfig]:
    """Return the engines that a preset names for the roles of a graph."""
    return preset.choose_engines([role.name for role in graph.roles], [role.name for role in graph.optional_roles])


def resolve_limits(role: Role[Any, Any], choice: EngineConfig, stored: StoredProviders) -> EngineConfig:
    """Return the engine config with its token limits. The model table lists models by litellm's names."""
    resolved = resolve_model_limits(use_litellm_name(choice, stored), RoleLimits(role.answer_tokens))
    fallbacks = choice.fallbacks and tuple(resolve_limits(role, one, stored) for one in choice.fallbacks)
    return resolved.model_copy(update={"model": choice.model, "fallbacks": fallbacks})


def select_engines(
    graph: Graph, requested: Mapping[str, EngineConfig], default: EngineConfig
) -> dict[str, EngineConfig]:
    """Return the engine of each role of a graph, without checking addresses and token limits.

    Optional roles that are not requested are left out. Raises InvalidInput for an unknown role, engine or prompt
    format.
    """
    roles = {role.name: role for role in graph.list_askable_roles(requested)}
    for name, choice in requested.items():
        if name not in roles:
            known = sorted(role.name for role in (*graph.roles, *graph.optional_roles))
            raise InvalidInput(f"engines.{name}", f"{graph.name} has no such role", f"Use one of: {', '.join(known)}.")
        if choice.engine not in ENGINES:
            raise InvalidInput(
                f"engines.{name}.engine", f"there is no engine {choice.engine!r}", f"Use one of: {', '.join(ENGINES)}."
            )
        _check_prompt_format(roles[name], choice)
    shipped = {name: parse_engine(text) for name, text in graph.engines.items()}
    return {
        name: _add_default_format(role, requested.get(name) or shipped.get(name, default))
        for name, role in sorted(roles.items())
    }


def _add_default_format(role: Role[Any, Any], choice: EngineConfig) -> EngineConfig:
    """Return the engine config with the role's default format, in which a provider's model is asked.

    The run pins it, so that a replay renders the same prompts.
    """
    if choice.engine == "litellm" and not choice.prompt_format and role.default_format:
        choice = choice.model_copy(update={"prompt_format": role.default_format})
    if not choice.fallbacks:
        return choice
    fallbacks = tuple(
        one if one.prompt_format else one.model_copy(update={"prompt_format": choice.prompt_format})
        for one in choice.fallbacks
    )
    return choice.model_copy(update={"fallbacks": fallbacks})


def _check_prompt_format(role: Role[Any, Any], choice: EngineConfig) -> None:
    formats = extend_role(role).prompt_formats
    if choice.prompt_format and choice.prompt_format not in {JSON, *(one.name for one in formats)}:
        names = ", ".join((JSON, *(one.name for one in formats)))
        remedy = f"Use one of: {names}; or leave it out."
        raise InvalidInput(
            f"engines.{role.name}.prompt_format", f"the role has no prompt format {choice.prompt_format!r}", remedy
        )
