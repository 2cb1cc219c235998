"""JSON lines: a sink for all formats with one document per line."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

import orjson

ORJSON_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class JsonLinesSink:
    """Writes the documents that `build_documents` returns for each record.

    Numbers that are not finite become null.
    """

    def __init__(self, file: BinaryIO, build_documents: Callable[[Any], Iterable[dict[str, Any]]]) -> None:
        self._file, self._documents = file, build_documents
        self.record_count = 0

    def write(self, records: Sequence[Any]) -> None:
        for unit in records:
            for document in self._documents(unit):
                self._file.write(orjson.dumps(document, option=ORJSON_OPTIONS))
                self.record_count += 1

    def close(self) -> None:
        self._file.flush()
