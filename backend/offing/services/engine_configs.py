"""Check the engines that a request names before anything is stored.

The worker checks them again before each call. Checking here gives the caller an error at once.
"""

from collections.abc import Mapping

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import MAX_FALLBACKS, EngineConfig, EngineFailure, list_chain
from offing.models.credentials import EngineEndpoint, resolve_endpoint, resolve_policy_endpoint
from offing.models.litellm_request import parse_options
from offing.models.model_limits import find_limit_problem
from offing.models.stored_provider import StoredProvider, resolve_stored_endpoint, use_litellm_name

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
