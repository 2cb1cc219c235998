"""Presets of a tenant: those that come with Offing, built from the configured providers, and its own ones."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.run import Depth
from offing.models.credentials import KEY_VARIABLES
from offing.models.engine import ENGINES
from offing.models.engine_discovery import probe_model_servers
from offing.models.preset_table import BUDGETS, LOCAL, Preset, build_presets
from offing.models.stored_provider import SERVER_PROVIDERS
from offing.services.engine_configs import check_engines
from offing.services.providers import list_stored
from offing.storage import presets, providers, tenants
from offing.storage.pool import Database
from offing.storage.providers import ProviderRow

MAX_PRESET_ROLES = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_MAX_BUDGET: Mapping[str, float] = {"max_turns": 2048, "max_tokens": 10**12, "max_cost_usd": 1e5, "max_seconds": 1e8}
"""The limits that a preset may set, with their largest values."""


async def list_presets(
    database: Database, tenant_id: UUID, env: Mapping[str, str] = environment.VARIABLES
) -> Sequence[Preset]:
    """Return the presets by name. A tenant's own one replaces a built-in one of the same name."""
    async with database.transaction(tenant_id) as connection:
        own = await presets.list_presets(connection)
        stored = await providers.list_providers(connection)
    built_in = await _build_presets(stored, env)
    merged = {**built_in, **{preset.name: preset for preset in own}}
    return [merged[name] for name in sorted(merged)]


async def get_preset(
    database: Database, tenant_id: UUID, name: str, env: Mapping[str, str] = environment.VARIABLES
) -> Preset:
    """Return a preset. Raises InvalidInput that says what is missing if there is none."""
    async with database.transaction(tenant_id) as connection:
        if own := await presets.find_preset(connection, name):
            return own
    available = {preset.name: preset for preset in await list_presets(database, tenant_id, env)}
    if name in available:
        return available[name]
    if name == LOCAL:
        remedy = "Start one, such as Ollama, and allow it with `offing engine accept ADDRESS`."
        raise InvalidInput("preset", "no model server was found on this machine", remedy)
    if name in BUDGETS:
        remedy = "Add one with `offing provider add NAME`."
        raise InvalidInput("preset", "no provider with models for it has a key", remedy)
    known = ", ".join(sorted({*available, *BUDGETS}))
    raise InvalidInput("preset", f"there is no preset {name[:80]!r}", f"Use one of: {known}.")


async def find_default_preset(
    database: Database, tenant_id: UUID, env: Mapping[str, str] = environment.VARIABLES
) -> Preset | None:
    """Return the preset of new questions that name neither a preset nor an engine. `None` means that there is none.

    Raises InvalidInput if the preset that was chosen is not available any more.
    """
    async with database.transaction(tenant_id) as connection:
        name = (await tenants.get_tenant(connection, tenant_id)).default_preset
    if name is None:
        return None
    try:
        return await get_preset(database, tenant_id, name, env)
    except InvalidInput as error:
        problem = f"the default preset {name!r} cannot be used: {error.problem}"
        remedy = f"{error.remedy} Or choose another default preset in Settings, or with `offing preset default NAME`."
        raise InvalidInput("preset", problem, remedy) from error


async def put_preset(database: Database, tenant_id: UUID, preset: Preset) -> Preset:
    """Create or replace a preset. Raises InvalidInput that names the field."""
    _check_preset(preset)
    async with database.transaction(tenant_id) as connection:
        check_engines(preset.engines, "engines", await list_stored(connection))
        await presets.upsert_preset(connection, tenant_id, preset)
    return preset


async def delete_preset(database: Database, tenant_id: UUID, name: str) -> None:
    """Delete a tenant's own preset. Raises NotFound.

    If it was the default one, there is none any more, unless a built-in one of the same name takes its place.
    """
    async with database.transaction(tenant_id) as connection:
        await presets.delete_preset(connection, name)
        tenant = await tenants.get_tenant(connection, tenant_id)
        if tenant.default_preset == name and name not in BUDGETS:
            await tenants.set_default_preset(connection, tenant_id, None)


def _check_preset(preset: Preset) -> None:
    if not _NAME.fullmatch(preset.name):
        remedy = "Use 1 to 64 lower-case letters, digits, periods, hyphens and underscores."
        raise InvalidInput("name", f"{preset.name[:80]!r} cannot be the name of a preset", remedy)
    if not 1 <= len(preset.engines) <= MAX_PRESET_ROLES:
        raise InvalidInput(
            "engines", f"has {len(preset.engines)} roles", f"Name 1 to {MAX_PRESET_ROLES} roles, or all."
        )
    for role, config in preset.engines.items():
        if config.engine not in ENGINES:
            problem = f"there is no engine {config.engine!r}"
            raise InvalidInput(f"engines.{role}.engine", problem, f"Use one of: {', '.join(ENGINES)}.")
    for name, value in preset.budget.items():
        _check_depth(value) if name == "depth" else _check_limit(name, value)


def _check_depth(value: Any) -> None:
    if value not in list(Depth):
        raise InvalidInput("budget.depth", f"{value!r} is not a depth", f"Use one of: {', '.join(Depth)}.")


def _check_limit(name: str, value: Any) -> None:
    if name not in _MAX_BUDGET:
        raise InvalidInput(f"budget.{name}", "is not a limit", f"Use: {', '.join(_MAX_BUDGET)}, depth.")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    most, has_minimum = _MAX_BUDGET[name], name == "max_seconds"
    if not is_number or not 0 <= value <= most or (has_minimum and not value):
        least = "more than 0, up to" if has_minimum else "0 to"
        raise InvalidInput(f"budget.{name}", f"{value!r} is out of range", f"Use {least} {most:g}.")


async def _build_presets(stored: Sequence[ProviderRow], env: Mapping[str, str]) -> Mapping[str, Preset]:
    """Return the built-in presets. A stored provider comes before one of the environment."""
    keyed = [(row.name, row.litellm_provider) for row in stored if row.key_id is not None]
    keyed += [(name, name) for name, variable in KEY_VARIABLES.items() if env.get(variable)]
    tested = [row.last_test for row in stored if row.litellm_provider in SERVER_PROVIDERS and row.last_test]
    local_models = [str(test["model"]) for test in tested]
    for server in await probe_model_servers(env):
        local_models += server.models
    return build_presets(keyed, local_models)
