"""Fetched web pages, stored as sources.

They have a separate collection that library search does not include. Citations refer to the
text of a page, as to any other text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from psycopg.rows import class_row

from offing.storage import library
from offing.storage.passages import TextWindowRow
from offing.storage.pool import Connection

WEB_COLLECTION = "web"

HIDE_FROM_SEARCH = "update source set removed_at = clock_timestamp() where tenant_id = %s and id = %s"

FIND_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = %(url)s
       and s.added_at > clock_timestamp() - %(fresh)s
"""

FIND_RECORDED_TEXTS = "select name, text_id from source where tenant_id = %s and collection = %s and name = any(%s)"

FIND_RECORDED_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.tenant_id = s.tenant_id and a.id = %(text)s
     where s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = %(url)s
"""

LIST_UNINDEXED_TEXTS = """
    select wanted.text_id, min(s.title) as title, a.body as text
      from unnest(%(urls)s::text[], %(texts)s::uuid[]) as wanted(url, text_id)
      join source s on s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = wanted.url
      join extracted_text a on a.tenant_id = %(tenant)s and a.id = wanted.text_id
     where not exists (select from recorded_word w where w.tenant_id = %(tenant)s and w.word = %(mark)s
                                                     and w.text_id = wanted.text_id)
     group by wanted.text_id, a.body
     order by wanted.text_id limit %(limit)s
"""

INSERT_RECORDED_WORDS = """
    insert into recorded_word (tenant_id, word, text_id)
    select %(tenant)s, word, text_id from unnest(%(words)s::text[], %(texts)s::uuid[]) as new(word, text_id)
    on conflict do nothing
"""

SEARCH_RECORDED_PAGES = """
    select wanted.url, s.title, left(a.body, %(snippet)s) as text
      from (select w.text_id, count(*) as words from recorded_word w
             where w.tenant_id = %(tenant)s and w.word = any(%(words)s) and w.text_id = any(%(texts)s)
             group by w.text_id) as found
      join unnest(%(urls)s::text[], %(texts)s::uuid[]) as wanted(url, text_id) on wanted.text_id = found.text_id
      join source s on s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = wanted.url
      join extracted_text a on a.tenant_id = %(tenant)s and a.id = wanted.text_id
     order by found.words desc, wanted.url collate "C" limit %(limit)s
"""

INDEX_MARK = " 1"
"""Word of each text whose words are stored. No word has a space. Its number is the version of how a text is split."""


@dataclass(frozen=True, slots=True)
class RecordedPageRow:
    """A recorded page with the beginning of its text."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class UnindexedTextRow:
    """The text of a recorded page whose words are not stored."""

    text_id: UUID
    title: str
    text: str


async def find_recorded_texts(connection: Connection, tenant_id: UUID, urls: Sequence[str]) -> dict[str, UUID]:
    """Return the id of the latest text of each page that a run of the tenant has read, of any age, by URL."""
    if not urls:
        return {}
    rows = await connection.execute(FIND_RECORDED_TEXTS, (tenant_id, WEB_COLLECTION, list(urls)))
    return dict(await rows.fetchall())


async def find_recorded_window(
    connection: Connection, tenant_id: UUID, url: str, text_id: UUID, start: int, length: int
) -> TextWindowRow | None:
    """Return `length` code points from `start` on of one text of a page. `None` means that it is not kept any more."""
    values = {
        "tenant": tenant_id,
        "web": WEB_COLLECTION,
        "url": url,
        "text": text_id,
        "start": start,
        "length": length,
    }
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_RECORDED_WINDOW, values)
        return await cursor.fetchone()


async def list_unindexed_texts(
    connection: Connection, tenant_id: UUID, texts: Mapping[str, UUID], limit: int
) -> list[UnindexedTextRow]:
    """Return at most `limit` of these texts of pages, by URL, whose words are not stored."""
    values = {**_recorded(tenant_id, texts), "mark": INDEX_MARK, "limit": limit}
    async with connection.cursor(row_factory=class_row(UnindexedTextRow)) as cursor:
        await cursor.execute(LIST_UNINDEXED_TEXTS, values)
        return await cursor.fetchall()


async def insert_recorded_words(connection: Connection, tenant_id: UUID, words: Mapping[UUID, Collection[str]]) -> None:
    """Store the different words of texts. Those that are stored already stay."""
    rows = [(word, text) for text, own in words.items() for word in (INDEX_MARK, *sorted(own))]
    values = {"tenant": tenant_id, "words": [word for word, _ in rows], "texts": [text for _, text in rows]}
    await connection.execute(INSERT_RECORDED_WORDS, values)


async def search_recorded_pages(
    connection: Connection, tenant_id: UUID, texts: Mapping[str, UUID], words: Collection[str], limit: int, snippet: int
) -> list[RecordedPageRow]:
    """Return at most `limit` pages with these texts that contain one of the words, with `snippet` characters of each.

    Those with the most words are first, and equal ones are ordered by URL. Only pages whose words are stored are found.
    """
    values = {**_recorded(tenant_id, texts), "words": sorted(words), "limit": limit, "snippet": snippet}
    async with connection.cursor(row_factory=class_row(RecordedPageRow)) as cursor:
        await cursor.execute(SEARCH_RECORDED_PAGES, values)
        return await cursor.fetchall()


def _recorded(tenant_id: UUID, texts: Mapping[str, UUID]) -> dict[str, object]:
    return {"tenant": tenant_id, "web": WEB_COLLECTION, "urls": list(texts), "texts": list(texts.values())}


async def upsert_page(
    connection: Connection, tenant_id: UUID, *, source_id: UUID, url: str, title: str, text_id: UUID
) -> None:
    """Store a text as the web page at a URL. The previous text is kept for existing citations."""
    source = await library.upsert_source(
        connection, tenant_id, source_id=source_id, collection=WEB_COLLECTION, name=url, title=title, text_id=text_id
    )
    await connection.execute(HIDE_FROM_SEARCH, (tenant_id, source))


async def find_window(
    connection: Connection, tenant_id: UUID, url: str, start: int, length: int, max_age: timedelta
) -> TextWindowRow | None:
    """Return `length` code points of a page from `start` on.

    `None` means that the page was not fetched within `max_age`.
    """
    values = {
        "tenant": tenant_id,
        "web": WEB_COLLECTION,
        "url": url,
        "start": start,
        "length": length,
        "fresh": max_age,
    }
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_WINDOW, values)
        return await cursor.fetchone()
