"""Question presets: saved ways to ask. They contain the settings of a question, and never the question."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.storage import question_presets
from offing.storage.pool import Database
from offing.storage.question_presets import QuestionPresetRow

MAX_QUESTION_PRESETS = 100
"""Maximum number of presets of a tenant."""
MAX_NAME_CHARS = 100
MAX_SETTINGS_BYTES = 128_000
"""Maximum size of the settings of a preset, as JSON."""


async def list_question_presets(database: Database, tenant_id: UUID) -> Sequence[QuestionPresetRow]:
    """Return the presets by name."""
    async with database.transaction(tenant_id) as connection:
        return await question_presets.list_question_presets(connection, MAX_QUESTION_PRESETS)


async def create_question_preset(
    database: Database, tenant_id: UUID, name: str, settings: Mapping[str, Any]
) -> QuestionPresetRow:
    """Create a preset. Raises InvalidInput, and Conflict if the name is taken or there are too many presets."""
    name = _check_name(name)
    _check_settings(settings)
    async with database.transaction(tenant_id) as connection:
        if await question_presets.count_for_insert(connection) >= MAX_QUESTION_PRESETS:
            raise Conflict(f"There are {MAX_QUESTION_PRESETS} presets, the maximum.", "Delete one first.")
        return await question_presets.insert_question_preset(connection, tenant_id, new_id(), name, settings)


async def change_question_preset(
    database: Database, tenant_id: UUID, preset_id: UUID, name: str | None, settings: Mapping[str, Any] | None
) -> QuestionPresetRow:
    """Change the name or the settings; `None` leaves them unchanged. Raises InvalidInput, NotFound and Conflict."""
    name = None if name is None else _check_name(name)
    if settings is not None:
        _check_settings(settings)
    async with database.transaction(tenant_id) as connection:
        return await question_presets.update_question_preset(connection, preset_id, name, settings)


async def delete_question_preset(database: Database, tenant_id: UUID, preset_id: UUID) -> None:
    """Delete a preset. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await question_presets.delete_question_preset(connection, preset_id)


def _check_name(name: str) -> str:
    stripped = " ".join(name.split())
    if not stripped or len(stripped) > MAX_NAME_CHARS or not stripped.isprintable():
        problem = "is empty" if not stripped else f"{stripped[:40]!r} cannot be the name of a preset"
        raise InvalidInput("name", problem, f"Use 1 to {MAX_NAME_CHARS} characters on one line.")
    return stripped


def _check_settings(settings: Mapping[str, Any]) -> None:
    body = orjson.dumps(settings)
    if len(body) > MAX_SETTINGS_BYTES:
        raise InvalidInput(
            "settings", f"has {len(body)} bytes", f"Use at most {MAX_SETTINGS_BYTES}: name collections, not documents."
        )
    if b"\\u0000" in body:
        raise InvalidInput("settings", "contains a NUL character", "Remove it.")
