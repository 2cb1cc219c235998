"""What the verbs of collecting read from a command line, and the hashes under which weights are registered."""

import json
from pathlib import Path

import pytest

from offing.cli.rollouts import merge_engine_configs, parse_policy_configs, parse_scorer
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.datasets.task import TaskSpec, parse_task_line, read_task_file
from offing.models.policy_folder import PolicyHashes, hash_template, hash_tokenizer, hash_weights
from offing.services.graphs import open_registry
from offing.services.policy_files import hash_files
from offing.services.rollouts import ScorerSpec
from offing.services.tasks import hash_task, sample_tasks
from offing.tools.environment import TaskSample


def test_a_scorer_is_written_with_weight_and_options() -> None:
    assert parse_scorer("exact_match") == ScorerSpec("exact_match", 1.0, {})
    assert parse_scorer("token_f1=0.5") == ScorerSpec("token_f1", 0.5, {})
    assert parse_scorer('numeric:{"relative": 0.01}') == ScorerSpec("numeric", 1.0, {"relative": 0.01})
    assert parse_scorer('rubric_judge=2:{"engine": "litellm:a/b"}') == ScorerSpec(
        "rubric_judge", 2.0, {"engine": "litellm:a/b"}
    )


@pytest.mark.parametrize("text", ["", "exact match", "token_f1=", "token_f1=x", "numeric:[1]", "numeric:{nope}"])
def test_a_scorer_that_cannot_be_read_is_rejected_by_flag(text: str) -> None:
    with pytest.raises(InvalidInput, match="--scorer"):
        parse_scorer(text)


def test_a_policy_is_pinned_by_role_name_and_version() -> None:
    assert parse_policy_configs(["planner=small@3"]) == {"planner": EngineConfig(engine="policy", model="small@3")}
    compact = EngineConfig(engine="policy", model="small@3", prompt_format="compact")
    assert parse_policy_configs(["planner+compact=small@3"]) == {"planner": compact}
    with pytest.raises(InvalidInput, match="--policy"):
        parse_policy_configs(["small@3"])


def test_a_role_with_an_engine_and_a_policy_is_rejected_by_name() -> None:
    graph = open_registry()["agentflow"]
    both = merge_engine_configs(["all=rules:world"], ["planner=small@3"], graph)
    assert {name for name, choice in both.items() if choice.engine == "rules"} == {r.name for r in graph.roles} - {
        "planner"
    }
    assert both["planner"].model == "small@3"
    with pytest.raises(InvalidInput, match="'planner' also has an --engine"):
        merge_engine_configs(["verifier=extractive", "planner=rules:oracle"], ["planner+compact=small@3"], graph)


def test_a_task_file_is_read_line_by_line_and_a_mistake_is_named_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"question": "Why is that?", "answer": "Because"}\n\n{"question": "How?", "answers": []}\n')
    first, second = read_task_file(file)
    assert first.reference is not None
    assert first.reference.answers == ("Because",)
    assert second.reference is not None
    assert second.reference.answers == ()
    assert len(read_task_file(file, 1)) == 1
    file.write_text('{"question": "Why is that?"}\n{"question": "How?", "anwser": "x"}\n')
    with pytest.raises(InvalidInput, match=r"tasks\.jsonl line 2\.anwser"):
        read_task_file(file)
    with pytest.raises(InvalidInput, match="is not a file"):
        read_task_file(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"question": "Why is that?", "answer": "a", "answers": ["b"]}',
        '{"question": "Why is that?", "evidence": [{"quote": " "}]}',
        '{"question": "Why is that?", "answers": ["a"], "evidence": [{"document": "x"}]}',
        '{"question": "Why is that?", "answers": [""]}',
        '{"question": "  ", "answers": ["a"]}',
        '{"question": "Why is that?", "scope": {"everything": true}}',
    ],
)
def test_a_task_that_says_too_little_or_too_much_is_rejected(line: str) -> None:
    with pytest.raises(InvalidInput, match="line 7"):
        parse_task_line(line, "line 7")


def test_tasks_are_told_apart_by_question_scope_and_what_is_right() -> None:
    spec = TaskSpec(question="Why is that?", answers=["a"], tags=["x"])
    same = TaskSpec(question=" Why is that? ", answer="a", name="7", difficulty=0.5)
    others = [
        TaskSpec(question="Why is that?", answers=["b"]),
        TaskSpec(question="Why is that?", answers=[]),
        TaskSpec(question="Why is that?"),
        TaskSpec.model_validate({"question": "Why is that?", "answers": ["a"], "scope": {"environment": "train-1@50"}}),
    ]
    assert hash_task(spec) == hash_task(same)
    assert len({hash_task(spec), *map(hash_task, others)}) == 5


def test_tasks_of_a_world_come_with_their_scope_and_reference() -> None:
    drawn = sample_tasks(TaskSample("train-3@50", 12, (1, 2), None, 5))
    assert len(drawn) == 12
    assert all(spec.scope_of_run() == {"environment": "train-3@50"} and spec.reference is not None for spec in drawn)
    assert drawn == sample_tasks(TaskSample("train-3@50", 12, (1, 2), None, 5))


def test_the_hashes_of_a_folder_are_those_that_the_engine_reports(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    assert hash_files(tmp_path, None) == PolicyHashes(hash_weights(tmp_path), "", "")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ old }}"}))
    digest = hash_files(tmp_path, None)
    assert (digest.tokenizer, digest.template) == (hash_tokenizer(tmp_path), hash_template("{{ old }}"))
    (tmp_path / "chat_template.jinja").write_text("{{ new }}")
    assert hash_files(tmp_path, None).template == hash_template("{{ new }}")
    before = hash_files(tmp_path, None).weights
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    assert hash_files(tmp_path, None).weights != before
