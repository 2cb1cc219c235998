"""JSON lines: the sink that formats of one document a line share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

import orjson

OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class Lines:
    """Writes what `documents` makes of each unit. Numbers that are not finite become null."""

    def __init__(self, file: BinaryIO, documents: Callable[[Any], Iterable[dict[str, Any]]]) -> None:
        self._file, self._documents = file, documents
        self.written = 0

    def write(self, units: Sequence[Any]) -> None:
        for unit in units:
            for document in self._documents(unit):
                self._file.write(orjson.dumps(document, option=OPTIONS))
                self.written += 1

    def close(self) -> None:
        self._file.flush()
