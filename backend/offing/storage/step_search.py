"""Search in the steps of one run: by text in what a step shows and records, and by the node that recorded it."""

from dataclasses import dataclass
from uuid import UUID

import orjson

from offing.storage.pool import Connection

MAX_EXCERPT_CHARS = 200
CHARS_BEFORE_MATCH = 60

NODE_OF_STEP = (
    "case when path like '\\_\\_pregel\\_pull/%%' then split_part(split_part(path, '>', 1), '/', 2) else node end"
)
"""The node of the run's own graph that recorded a step, from the path of its call key, or as LangGraph named it if it
was started with `Send`. Null means unknown: the step is no call, or it was recorded before such names were."""

MATCHES = f"""
    run_id = %(run)s and seq > %(after)s
    and (%(node)s::text is null or {NODE_OF_STEP} = %(node)s)
    and (%(pattern)s::text is null or title ~* %(pattern)s or detail ~* %(pattern)s or label ~* %(pattern)s
         or jsonb_path_exists(payload, %(json_path)s::jsonpath))
"""

COUNT_MATCHES = f"select count(*) from step where {MATCHES}"

LIST_MATCHES = f"""
    select seq,
           case when %(pattern)s::text is null or title ~* %(pattern)s then ''
                when detail ~* %(pattern)s then detail
                else coalesce(jsonb_path_query_first(payload, %(json_path)s::jsonpath) #>> '{{}}', '') end
      from step where {MATCHES} order by seq limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class StepMatch:
    seq: int
    excerpt: str
    """Text around the match. Empty means that the title contains it, or that no text was searched for."""


async def count_matches(connection: Connection, run_id: UUID, text: str, node: str | None) -> int:
    """Return the number of steps that contain `text`, in any letter case, recorded by `node`.

    An empty text and `None` match every step.
    """
    parameters = _build_parameters(run_id, text, node, 0, 0)
    row = await (await connection.execute(COUNT_MATCHES, parameters, prepare=False)).fetchone()
    assert row is not None
    return row[0]


async def list_matches(
    connection: Connection, run_id: UUID, text: str, node: str | None, after_seq: int, limit: int
) -> list[StepMatch]:
    """Return the matching steps after `after_seq`, in order."""
    parameters = _build_parameters(run_id, text, node, after_seq, limit)
    rows = await (await connection.execute(LIST_MATCHES, parameters, prepare=False)).fetchall()
    return [StepMatch(seq, cut_excerpt(excerpt, text)) for seq, excerpt in rows]


def cut_excerpt(source: str, text: str) -> str:
    """Return the part of a text around the first occurrence of another, in one line."""
    line = " ".join(source.split())
    at = max(0, line.lower().find(" ".join(text.lower().split())) - CHARS_BEFORE_MATCH)
    end = at + MAX_EXCERPT_CHARS
    return f"{'…' if at else ''}{line[at:end]}{'…' if end < len(line) else ''}"


def _build_parameters(run_id: UUID, text: str, node: str | None, after_seq: int, limit: int) -> dict[str, object]:
    # Both patterns match the text literally: ***= in Postgres, and the flag q in a JSON path.
    literal = orjson.dumps(text).decode()
    return {
        "run": run_id,
        "after": after_seq,
        "node": node,
        "pattern": f"***={text}" if text else None,
        "json_path": f'strict $.** ? (@.type() == "string" && @ like_regex {literal} flag "iq")',
        "limit": limit,
    }
