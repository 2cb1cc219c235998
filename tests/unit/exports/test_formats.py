"""Formats as those who read them see them: with the readers' own packages."""

import io
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from atif import Trajectory

from offing.core.errors import InvalidInput
from offing.core.training_rows import SPAN_CODES
from offing.core.trajectory_records import SegmentInfo
from offing.exports import parquet
from offing.exports.arrow import pa, pq
from offing.exports.format import (
    FORMATS,
    ExportOptions,
    RecordUnit,
    format_from_filename,
    get_reader,
)
from tests.unit.exports.builders import (
    GROUP,
    RUN,
    a_dialogue,
    a_role_call,
    a_row,
    saved,
    trajectory_metadata,
    with_references,
    written,
)


def lines(name: str, *units: Any, options: ExportOptions | None = None) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in written(name, units, options).splitlines()]


@pytest.mark.parametrize("name", [f.name for f in FORMATS.values() if f.read is not None])
def test_what_was_written_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    rows = [
        a_row(),
        a_row(reward=None, group_id=None, tags=(), scores=()),
        a_row(reference=with_references().reference),
    ]
    assert list(get_reader(FORMATS[name])(saved(tmp_path, name, rows))) == rows


def test_a_format_that_loses_something_is_not_read_back() -> None:
    with pytest.raises(InvalidInput, match="parquet, rows"):
        get_reader(FORMATS["tinker"])


def test_parquet_is_read_by_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, "parquet", [a_row(), a_row()])
    script = (
        "import sys, datasets; d = datasets.load_dataset('parquet', data_files=sys.argv[1], cache_dir=sys.argv[2], "
        "split='train'); print(len(d), d[0]['token_ids'], d[0]['loss_mask'], d[0]['reward'])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script, str(path), str(tmp_path / "cache")], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == f"2 {a_row().token_ids.tolist()} {a_row().loss_mask.tolist()} 0.1"


def test_parquet_says_what_its_span_kinds_mean(tmp_path: Path) -> None:
    schema = pq.read_schema(saved(tmp_path, "parquet", [a_row()]))
    assert orjson.loads(schema.metadata[b"offing.span_kinds"]) == SPAN_CODES


def test_parquet_of_nothing_is_a_file_with_no_rows(tmp_path: Path) -> None:
    assert pq.read_table(saved(tmp_path, "parquet", [])).num_rows == 0


def test_verl_tensors_have_verls_shapes(tmp_path: Path) -> None:
    (result,) = pq.read_table(saved(tmp_path, "verl", [a_row()])).to_pylist()
    row = a_row()
    assert result["prompts"] + result["responses"] == result["input_ids"] == row.token_ids.tolist()
    assert result["prompts"] == [11, 12]
    assert result["position_ids"] == list(range(len(row)))
    assert result["attention_mask"] == [1] * len(row)
    assert result["response_mask"] == [1, 1, 1, 0, 0, 1]
    assert result["rollout_log_probs"] == [-0.125, -0.25, -0.375, 0, 0, -0.625]
    assert result["token_level_rewards"] == pytest.approx([0, 0, 0, 0, 0, 0.1])
    assert (result["uid"], result["run_id"]) == (str(GROUP), str(RUN))


def test_verl_has_no_reward_where_there_is_none(tmp_path: Path) -> None:
    (result,) = pq.read_table(saved(tmp_path, "verl", [a_row(reward=None)])).to_pylist()
    assert result["token_level_rewards"] is None


def test_verl_prompts_hold_each_task_once_and_no_answer_unasked(tmp_path: Path) -> None:
    (result,) = pq.read_table(saved(tmp_path, "verl_prompts", [a_dialogue(), a_dialogue()])).to_pylist()
    assert result["prompt"] == [{"role": "user", "content": trajectory_metadata().question}]
    assert result["reward_model"] == {"style": "rule", "ground_truth": None}
    message = a_dialogue(metadata=with_references())
    (result,) = pq.read_table(saved(tmp_path, "verl_prompts", [message])).to_pylist()
    assert result["reward_model"]["ground_truth"] == '["Bo","Bo B."]'


def test_tinker_targets_are_the_inputs_shifted_by_one() -> None:
    (datum,) = lines("tinker", a_row())
    inputs, targets = datum["model_input"]["chunks"][0]["tokens"], datum["loss_fn_inputs"]["target_tokens"]
    row = a_row()
    assert inputs == row.token_ids[:-1].tolist()
    assert targets == {"data": row.token_ids[1:].tolist(), "dtype": "int64", "shape": [len(row) - 1]}
    assert datum["loss_fn_inputs"]["mask"]["data"] == row.loss_mask[1:].astype(float).tolist()
    assert datum["loss_fn_inputs"]["logprobs"]["data"] == row.behavior_logprobs[1:].tolist()
    assert datum["offing"]["group_id"] == str(GROUP)


def test_a_chat_repeats_a_segment_as_it_was_said() -> None:
    (chat,) = lines("jsonl_chat", a_dialogue())
    assert chat["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "look up Ana", "weight": 1},
        {"role": "user", "content": "Ana: Bo"},
        {"role": "assistant", "content": "Bo", "weight": 1},
    ]
    assert (chat["reward"], chat["group_id"]) == (0.1, str(GROUP))
    assert chat["tools"][0]["function"]["parameters"]["properties"]["deep"] == {"type": "boolean"}
    assert "token_ids" not in chat


def test_a_chat_weighs_a_quarantined_answer_nothing_unless_asked_for() -> None:
    whole = a_dialogue()
    doubtful = a_dialogue(role_calls=(a_role_call(3, "look up Ana", quarantine="doubt"), *whole.role_calls[1:]))
    (chat,) = lines("jsonl_chat", doubtful)
    assert [m["weight"] for m in chat["messages"] if m["role"] == "assistant"] == [0, 1]
    (chat,) = lines("jsonl_chat", doubtful, options=ExportOptions(include_quarantined=True))
    assert [m["weight"] for m in chat["messages"] if m["role"] == "assistant"] == [1, 1]
    assert chat["quarantine"] == ["doubt"]


def test_a_chat_of_nothing_to_imitate_is_left_out() -> None:
    assert lines("jsonl_chat", a_dialogue(role_calls=(a_role_call(3, "text", trainable="none"),))) == []


@pytest.mark.parametrize(
    "name", [f.name for f in FORMATS.values() if f.streams_lines and f.unit is not RecordUnit.PREFERENCE]
)
def test_no_failed_attempt_is_written_as_an_answer(name: str) -> None:
    unit = a_row() if FORMATS[name].unit is RecordUnit.ROW else a_dialogue()
    for document in lines(name, unit):
        for step in document.get("steps", []):
            assert step.get("extra", {}).pop("failed_attempts", None) is not None or step["message"] != "{broken"
        assert "{broken" not in orjson.dumps(document).decode()


def test_atif_is_what_its_own_package_reads() -> None:
    (document,) = lines("atif", a_dialogue())
    read = Trajectory.model_validate(document)
    assert [s.source for s in read.steps] == ["user", "agent", "agent", "agent", "agent"]
    _, text, used, *_ = read.steps
    assert text.metrics is not None
    assert text.metrics.completion_token_ids == [3, 4]
    assert text.metrics.logprobs == [-0.5, -0.25]
    assert used.tool_calls is not None
    assert (used.llm_call_count, used.tool_calls[0].function_name) == (0, "look_up")
    assert used.observation is not None
    about = used.observation.results[0].extra
    assert about is not None
    assert (about["origin"], about["trust"]) == ("web:example.org", "untrusted")
    assert read.extra is not None
    assert read.extra["scores"][1]["failure"] == "no answer"


def test_reference_answers_are_in_no_format_unasked(tmp_path: Path) -> None:
    for format in FORMATS.values():
        if format.unit is RecordUnit.PREFERENCE:
            continue
        created = written(format.name, [a_row() if format.unit is RecordUnit.ROW else a_dialogue()])
        assert b"Bo B." not in created


def test_an_unknown_format_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"no export format 'csv'\. Use one of: atif, jsonl_chat, pairs, parquet"):
        FORMATS.get_named("csv", "format")


def test_a_missing_package_is_named_with_its_remedy(tmp_path: Path) -> None:
    script = (
        "import sys, io; sys.modules['pyarrow'] = None\n"
        "from offing.core.errors import InvalidInput\n"
        "from offing.exports.format import FORMATS, ExportOptions\n"
        "FORMATS['jsonl_chat'].create_sink(io.BytesIO(), ExportOptions()); print('numpy' in sys.modules)\n"
        "try: FORMATS['parquet'].create_sink(io.BytesIO(), ExportOptions())\n"
        "except InvalidInput as e: print(e)"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    numpy, problem = completed.stdout.splitlines()
    assert numpy == "False", "a format of text needs no numpy"
    assert "pyarrow" in problem
    assert "offing[train]" in problem


def test_arrays_of_a_read_row_have_their_types(tmp_path: Path) -> None:
    (row,) = get_reader(FORMATS["parquet"])(saved(tmp_path, "parquet", [a_row()]))
    assert row.token_ids.dtype == np.int32
    assert (row.turn_index.dtype, row.span_kind.dtype) == (np.int16, np.int8)


def test_nothing_is_kept_between_portions() -> None:
    file = io.BytesIO()
    sink = FORMATS["rows"].create_sink(file, ExportOptions())
    sink.write([a_row()])
    assert file.getvalue()
    assert sink.record_count == 1


@pytest.mark.parametrize("name", ["parquet", "verl"])
def test_every_row_of_many_row_groups_is_read_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_TOKENS", 20)
    rows = [a_row(seed=n, reward=n if n % 3 else None) for n in range(11)]
    file = io.BytesIO()
    sink = FORMATS[name].create_sink(file, ExportOptions())
    for row in rows:
        sink.write([row])
    sink.close()
    expected = import_module(f"offing.exports.{name}").build_record_batch(rows)
    table = pq.read_table(file)
    assert pq.ParquetFile(file).num_row_groups == 4
    assert repr(table.to_pylist()) == repr(expected.to_pylist()), "compared as text, because a NaN differs from itself"


def test_lists_that_are_empty_or_missing_are_read_as_such() -> None:
    kind = parquet.non_null_list(pa.int32())
    column = pa.array([[1, 2], [], None, [3], [], [4] * 300], kind)
    file = io.BytesIO()
    schema = pa.schema([pa.field("x", kind)])
    sink = parquet.ParquetSink(file, schema, lambda _: pa.RecordBatch.from_arrays([column], schema=schema))
    sink.write([[]])
    sink.close()
    assert pq.read_table(file).column("x").to_pylist() == column.to_pylist()


def test_rows_say_what_their_run_took(tmp_path: Path) -> None:
    for name in ("parquet", "verl"):
        (result,) = pq.read_table(saved(tmp_path, name, [a_row()])).to_pylist()
        assert (result["run_turns"], result["run_prompt_tokens"], result["run_cost_usd"]) == (7, 900, 0.0125)
        (result,) = pq.read_table(saved(tmp_path, name, [a_row(cost=None)])).to_pylist()
        assert result["run_cost_usd"] is None, "what is not known is not 0"
    (line,) = lines("rows", a_row())
    assert (line["run_completion_tokens"], line["run_seconds"], line["run_tool_calls"]) == (80, 3.5, 4)


@pytest.mark.parametrize("name", ["parquet", "verl"])
def test_a_row_of_what_no_role_could_use_says_so(name: str, tmp_path: Path) -> None:
    rejected = replace(a_row(), segment_info=SegmentInfo(1, "planner", "rejected"))
    results = pq.read_table(saved(tmp_path, name, [a_row(), rejected])).column("is_accepted").to_pylist()
    assert results == [True, False]


@pytest.mark.parametrize(
    ("name", "format"),
    [("x.parquet", "parquet"), ("a.verl.parquet", "verl"), ("a.rows.jsonl", "rows"), ("X.ATIF", "atif")],
)
def test_a_files_name_says_its_format(name: str, format: str) -> None:
    assert format_from_filename(name).name == format


@pytest.mark.parametrize(
    ("name", "expected"), [("x.jsonl", "atif, jsonl_chat"), ("x", "atif, jsonl_chat"), ("rows", "atif")]
)
def test_a_name_that_fits_several_formats_is_asked_about(name: str, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"--format with one of: {expected}"):
        format_from_filename(name)
