"""Example values of the library's schemas, for the OpenAPI document."""

from offing.api.example_values import QUOTE, SNAPSHOT_SHA256, SOURCE_ID, TEXT_ID, TIMESTAMP, Example

COLLECTION_EXAMPLE: Example = {
    "name": "undici",
    "count": 50,
    "removed_count": 0,
    "latest_added_at": TIMESTAMP,
    "active_runs": 0,
}

ERASURE_EXAMPLE: Example = {"sources": 1, "snapshots": 1, "passages": 9, "steps": 3}

SOURCE_EXAMPLE: Example = {
    "id": SOURCE_ID,
    "collection": "undici",
    "name": "docs/api/Pool.md",
    "title": "Pool",
    "media_type": "text/markdown",
    "size_bytes": 4210,
    "char_count": 4188,
    "text_id": TEXT_ID,
    "snapshot": SNAPSHOT_SHA256,
    "added_at": TIMESTAMP,
}

UPLOADED_FILE_EXAMPLE: Example = {"name": "Pool.md", "outcome": "added", "source": SOURCE_EXAMPLE, "problem": ""}

SEARCH_HIT_EXAMPLE: Example = {
    "text_id": TEXT_ID,
    "source_id": SOURCE_ID,
    "title": "Pool",
    "heading": "Class: Pool",
    "start": 120,
    "end": 196,
    "text": QUOTE,
    "marks": [{"start": 2, "end": 6}],
    "score": 11.2,
}

PASSAGE_EXAMPLE: Example = {
    "text_id": TEXT_ID,
    "source_id": SOURCE_ID,
    "title": "Pool",
    "name": "docs/api/Pool.md",
    "start": 120,
    "end": 196,
    "before": "Class: Pool\n\n",
    "text": QUOTE,
    "after": "\n\nRequests are not guaranteed to be dispatched in order.",
    "snapshot": SNAPSHOT_SHA256,
    "char_count": 4188,
}

LIBRARY_EXAMPLES: dict[str, Example] = {
    "SourceOut": SOURCE_EXAMPLE,
    "SourcePage": {"items": [SOURCE_EXAMPLE], "next": None, "total": 1},
    "CollectionOut": COLLECTION_EXAMPLE,
    "CollectionRenameIn": {"name": "undici", "new_name": "undici 7"},
    "CollectionDeletionOut": {"kept_count": 50, "erased": ERASURE_EXAMPLE, "remaining": 0},
    "SourceMoveIn": {"source_ids": [SOURCE_ID], "collection": "undici"},
    "SourceMoveOut": {"moved": 1},
    "UploadResultOut": {"files": [UPLOADED_FILE_EXAMPLE]},
    "SearchHitPage": {"items": [SEARCH_HIT_EXAMPLE], "notices": []},
    "LibraryStatusOut": {
        "text_count": 50,
        "embedding": {
            "model": "openai/text-embedding-3-small",
            "dimensions": 1536,
            "filled_count": 48,
            "rejected_count": 0,
        },
        "reranks": False,
    },
    "PassageOut": PASSAGE_EXAMPLE,
    "ErasureOut": ERASURE_EXAMPLE,
}
