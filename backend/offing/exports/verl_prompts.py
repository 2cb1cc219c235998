"""Tasks as verl's prompt rows, for collecting rollouts with verl.

Each task appears once, however many rollouts it has. `reward_model.ground_truth` is null unless
the export includes reference answers.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO

import orjson

from offing.core.trajectory_records import TextTrajectory, TrajectoryMetadata
from offing.exports.arrow import pa
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.parquet import ParquetSink

MESSAGE_TYPE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())])

SCHEMA = pa.schema(
    [
        pa.field("data_source", pa.string()),
        pa.field("prompt", pa.list_(MESSAGE_TYPE)),
        pa.field("ability", pa.string()),
        pa.field("reward_model", pa.struct([pa.field("style", pa.string()), pa.field("ground_truth", pa.string())])),
        pa.field(
            "extra_info",
            pa.struct([pa.field(name, pa.string()) for name in ("split", "index", "task_id", "graph", "group_id")]),
        ),
    ]
)


class PromptSink:
    """A sink that skips tasks it has already written. It keeps only their ids in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._sink, self._seen = ParquetSink(file, SCHEMA, _build_record_batch), set[object]()

    @property
    def record_count(self) -> int:
        return self._sink.record_count

    def write(self, records: Sequence[TextTrajectory]) -> None:
        for episode in (unit.metadata for unit in records):
            key = episode.task_id or episode.question
            if key not in self._seen:
                self._seen.add(key)
                self._sink.write([_Row(build_prompt_row(episode))])

    def close(self) -> None:
        self._sink.close()


class _Row(dict[str, Any]):
    """A row whose length is that of its question, because the sink counts tokens by length."""

    def __len__(self) -> int:
        return len(self["prompt"][0]["content"])


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return PromptSink(file)


def build_prompt_row(metadata: TrajectoryMetadata) -> dict[str, Any]:
    """Return the row of one task by verl's names."""
    references = metadata.reference
    answers = references.answers if references else None
    truth = None if answers is None else orjson.dumps(list(answers)).decode()
    return {
        "data_source": metadata.dataset or metadata.graph,
        "prompt": [{"role": "user", "content": metadata.question}],
        "ability": metadata.graph,
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {
            "split": metadata.split,
            "index": metadata.task_name,
            "task_id": str(metadata.task_id) if metadata.task_id else None,
            "graph": metadata.graph,
            "group_id": str(metadata.group_id) if metadata.group_id else None,
        },
    }


def _build_record_batch(rows: Sequence[dict[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=SCHEMA)


FORMAT = Format(
    "verl_prompts", RecordUnit.TRAJECTORY, "verl's prompt rows in Parquet", create_sink, streams_lines=False
)
