"""Question presets of a tenant: saved ways to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from offing.core.errors import Conflict, NotFound
from offing.storage.pool import Connection

COLUMNS = "id, name, settings, created_at, updated_at"

LIST_QUESTION_PRESETS = f"select {COLUMNS} from question_preset order by lower(name), name limit %s"

LOCK_TENANT = "select pg_advisory_xact_lock(hashtextextended('question_preset' || app.current_tenant_id()::text, 0))"
"""Serializes the creation of presets, so that their number is exact."""

COUNT_QUESTION_PRESETS = "select count(*) from question_preset"

INSERT_QUESTION_PRESET = f"""
    insert into question_preset (id, tenant_id, name, settings) values (%s, %s, %s, %s) returning {COLUMNS}
"""

UPDATE_QUESTION_PRESET = f"""
    update question_preset set name = coalesce(%s, name), settings = coalesce(%s, settings),
           updated_at = clock_timestamp()
     where id = %s returning {COLUMNS}
"""

DELETE_QUESTION_PRESET = "delete from question_preset where id = %s"


@dataclass(frozen=True, slots=True)
class QuestionPresetRow:
    """A saved way to ask."""

    id: UUID
    name: str
    settings: Mapping[str, Any]
    """What it sets of a question, as the API validated it. Absent fields have their default."""
    created_at: datetime
    updated_at: datetime


async def list_question_presets(connection: Connection, limit: int) -> Sequence[QuestionPresetRow]:
    """Return the presets by name."""
    rows = await (await connection.execute(LIST_QUESTION_PRESETS, (limit,))).fetchall()
    return [QuestionPresetRow(*row) for row in rows]


async def count_for_insert(connection: Connection) -> int:
    """Return the number of presets. No other transaction of the tenant adds one until this one ends."""
    await connection.execute(LOCK_TENANT)
    row = await (await connection.execute(COUNT_QUESTION_PRESETS)).fetchone()
    return row[0] if row else 0


async def insert_question_preset(
    connection: Connection, tenant_id: UUID, preset_id: UUID, name: str, settings: Mapping[str, Any]
) -> QuestionPresetRow:
    """Create a preset. Raises Conflict if the name is taken."""
    return await _write(connection, INSERT_QUESTION_PRESET, (preset_id, tenant_id, name, Jsonb(dict(settings))), name)


async def update_question_preset(
    connection: Connection, preset_id: UUID, name: str | None, settings: Mapping[str, Any] | None
) -> QuestionPresetRow:
    """Change the name or the settings; `None` leaves them unchanged. Raises NotFound, and Conflict for a taken name."""
    stored = None if settings is None else Jsonb(dict(settings))
    return await _write(connection, UPDATE_QUESTION_PRESET, (name, stored, preset_id), name, preset_id)


async def delete_question_preset(connection: Connection, preset_id: UUID) -> None:
    """Delete a preset. Raises NotFound."""
    if (await connection.execute(DELETE_QUESTION_PRESET, (preset_id,))).rowcount == 0:
        raise NotFound("question preset", str(preset_id))


async def _write(
    connection: Connection, statement: str, values: Sequence[Any], name: str | None, preset_id: UUID | None = None
) -> QuestionPresetRow:
    try:
        async with connection.transaction():
            row = await (await connection.execute(statement, values)).fetchone()  # pyright: ignore[reportArgumentType]
    except UniqueViolation as error:
        raise Conflict(
            f"There is another preset named {name!r}.", "Choose another name, or change that one."
        ) from error
    if row is None:
        raise NotFound("question preset", str(preset_id))
    return QuestionPresetRow(*row)
