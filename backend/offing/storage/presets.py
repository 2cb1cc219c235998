"""Presets of a tenant: engines for roles, and limits of a run."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.model import EngineConfig
from offing.models.preset_table import Preset
from offing.storage.pool import Connection

LIST_PRESETS = "select name, engines, budget from preset order by name"

FIND_PRESET = "select name, engines, budget from preset where name = %s"

UPSERT_PRESET = """
    insert into preset (tenant_id, name, engines, budget) values (%s, %s, %s, %s)
    on conflict (tenant_id, name) do update
      set engines = excluded.engines, budget = excluded.budget, updated_at = clock_timestamp()
"""

DELETE_PRESET = "delete from preset where name = %s"


async def list_presets(connection: Connection) -> Sequence[Preset]:
    """Return the tenant's own presets by name."""
    return [_read(*row) for row in await (await connection.execute(LIST_PRESETS)).fetchall()]


async def find_preset(connection: Connection, name: str) -> Preset | None:
    """Return the tenant's own preset of this name."""
    row = await (await connection.execute(FIND_PRESET, (name,))).fetchone()
    return _read(*row) if row else None


async def upsert_preset(connection: Connection, tenant_id: UUID, preset: Preset) -> None:
    """Create or replace a preset."""
    engines = {role: config.model_dump(mode="json", exclude_unset=True) for role, config in preset.engines.items()}
    await connection.execute(UPSERT_PRESET, (tenant_id, preset.name, Jsonb(engines), Jsonb(dict(preset.budget))))


async def delete_preset(connection: Connection, name: str) -> None:
    """Delete a preset. Raises NotFound."""
    if (await connection.execute(DELETE_PRESET, (name,))).rowcount == 0:
        raise NotFound("preset", name)


def _read(name: str, engines: Mapping[str, Any], budget: Mapping[str, Any]) -> Preset:
    return Preset(name, {role: EngineConfig.model_validate(config) for role, config in engines.items()}, budget)
