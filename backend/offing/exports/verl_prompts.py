"""Tasks as verl's prompt rows, for collecting again under verl: each task once, however many rollouts it has.

`reward_model.ground_truth` is null unless reference answers were asked for.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO

import orjson

from offing.core.episode import Dialogue, Episode
from offing.exports.arrow import pa
from offing.exports.format import Options, Sink
from offing.exports.parquet import ParquetSink

MESSAGE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())])

SCHEMA = pa.schema(
    [
        pa.field("data_source", pa.string()),
        pa.field("prompt", pa.list_(MESSAGE)),
        pa.field("ability", pa.string()),
        pa.field("reward_model", pa.struct([pa.field("style", pa.string()), pa.field("ground_truth", pa.string())])),
        pa.field(
            "extra_info",
            pa.struct([pa.field(name, pa.string()) for name in ("split", "index", "task_id", "graph", "group_id")]),
        ),
    ]
)


class Tasks:
    """Leaves out tasks that it has written; remembers their ids and no more."""

    def __init__(self, file: BinaryIO) -> None:
        self._sink, self._seen = ParquetSink(file, SCHEMA, _batch), set[object]()

    @property
    def written(self) -> int:
        return self._sink.written

    def write(self, units: Sequence[Dialogue]) -> None:
        for episode in (unit.episode for unit in units):
            key = episode.task or episode.question
            if key not in self._seen:
                self._seen.add(key)
                self._sink.write([_Row(prompt_row(episode))])

    def close(self) -> None:
        self._sink.close()


class _Row(dict[str, Any]):
    """Counts as its question's length where the sink asks for tokens."""

    def __len__(self) -> int:
        return len(self["prompt"][0]["content"])


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return Tasks(file)


def prompt_row(episode: Episode) -> dict[str, Any]:
    """One task by verl's names."""
    references = episode.references
    truth = None if references is None else orjson.dumps(list(references.answers)).decode()
    return {
        "data_source": episode.dataset or episode.graph,
        "prompt": [{"role": "user", "content": episode.question}],
        "ability": episode.graph,
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {
            "split": episode.split,
            "index": episode.task_name,
            "task_id": str(episode.task) if episode.task else None,
            "graph": episode.graph,
            "group_id": str(episode.group) if episode.group else None,
        },
    }


def _batch(rows: Sequence[dict[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=SCHEMA)
