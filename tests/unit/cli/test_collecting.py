"""What the verbs of collecting read from a command line, and the hashes under which weights are registered."""

import json
from pathlib import Path

import pytest

from offing.cli.policy import hashes
from offing.cli.rollout import chosen, policies_of, scorer_of
from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.services.graphs import installed
from offing.services.rollouts import ScorerSpec
from offing.services.tasks import Drawn, TaskSpec, content_sha256, of_world, parse_line, read_file
from offing_engine.folder import template_sha256, tokenizer_sha256, weights_sha256


def test_a_scorer_is_written_with_weight_and_options() -> None:
    assert scorer_of("exact_match") == ScorerSpec("exact_match", 1.0, {})
    assert scorer_of("token_f1=0.5") == ScorerSpec("token_f1", 0.5, {})
    assert scorer_of('numeric:{"relative": 0.01}') == ScorerSpec("numeric", 1.0, {"relative": 0.01})
    assert scorer_of('rubric_judge=2:{"engine": "litellm:a/b"}') == ScorerSpec(
        "rubric_judge", 2.0, {"engine": "litellm:a/b"}
    )


@pytest.mark.parametrize("text", ["", "exact match", "token_f1=", "token_f1=x", "numeric:[1]", "numeric:{nope}"])
def test_a_scorer_that_cannot_be_read_is_refused_by_flag(text: str) -> None:
    with pytest.raises(InvalidInput, match="--scorer"):
        scorer_of(text)


def test_a_policy_is_pinned_by_role_name_and_version() -> None:
    assert policies_of(["planner=small@3"]) == {"planner": EngineChoice(engine="policy", model="small@3")}
    compact = EngineChoice(engine="policy", model="small@3", form="compact")
    assert policies_of(["planner+compact=small@3"]) == {"planner": compact}
    with pytest.raises(InvalidInput, match="--policy"):
        policies_of(["small@3"])


def test_a_role_with_an_engine_and_a_policy_is_refused_by_name() -> None:
    graph = installed()["agentflow"]
    both = chosen(["all=rules:world"], ["planner=small@3"], graph)
    assert {name for name, choice in both.items() if choice.engine == "rules"} == {r.name for r in graph.roles} - {
        "planner"
    }
    assert both["planner"].model == "small@3"
    with pytest.raises(InvalidInput, match="'planner' has an --engine"):
        chosen(["verifier=extractive", "planner=rules:oracle"], ["planner+compact=small@3"], graph)


def test_a_task_file_is_read_line_by_line_and_a_mistake_is_named_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"question": "Why is that?", "answer": "Because"}\n\n{"question": "How?", "answers": []}\n')
    first, second = read_file(file)
    assert first.reference is not None
    assert first.reference.answers == ("Because",)
    assert second.reference is not None
    assert second.reference.answers == ()
    assert len(read_file(file, 1)) == 1
    file.write_text('{"question": "Why is that?"}\n{"question": "How?", "anwser": "x"}\n')
    with pytest.raises(InvalidInput, match=r"tasks\.jsonl line 2\.anwser"):
        read_file(file)
    with pytest.raises(InvalidInput, match="is not a file"):
        read_file(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"question": "Why is that?", "answer": "a", "answers": ["b"]}',
        '{"question": "Why is that?", "evidence": [{"quote": "x"}]}',
        '{"question": "Why is that?", "answers": ["a"], "evidence": [{"document": "x"}]}',
        '{"question": "Why is that?", "answers": [""]}',
        '{"question": "  ", "answers": ["a"]}',
        '{"question": "Why is that?", "scope": {"everything": true}}',
    ],
)
def test_a_task_that_says_too_little_or_too_much_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="line 7"):
        parse_line(line, "line 7")


def test_tasks_are_told_apart_by_question_scope_and_what_is_right() -> None:
    spec = TaskSpec(question="Why is that?", answers=["a"], tags=["x"])
    same = TaskSpec(question=" Why is that? ", answer="a", name="7", difficulty=0.5)
    others = [
        TaskSpec(question="Why is that?", answers=["b"]),
        TaskSpec(question="Why is that?", answers=[]),
        TaskSpec(question="Why is that?"),
        TaskSpec.model_validate({"question": "Why is that?", "answers": ["a"], "scope": {"world": "train-1@50"}}),
    ]
    assert content_sha256(spec) == content_sha256(same)
    assert len({content_sha256(spec), *map(content_sha256, others)}) == 5


def test_tasks_of_a_world_come_with_their_scope_and_reference() -> None:
    drawn = of_world(Drawn("train-3@50", 12, (1, 2), None, 5))
    assert len(drawn) == 12
    assert all(spec.scope_of_run() == {"world": "train-3@50"} and spec.reference is not None for spec in drawn)
    assert drawn == of_world(Drawn("train-3@50", 12, (1, 2), None, 5))


def test_the_hashes_of_a_folder_are_those_that_the_engine_reports(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    assert hashes(tmp_path, None) == (weights_sha256(tmp_path), "", "")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ old }}"}))
    assert hashes(tmp_path, None)[1:] == (tokenizer_sha256(tmp_path), template_sha256("{{ old }}"))
    (tmp_path / "chat_template.jinja").write_text("{{ new }}")
    assert hashes(tmp_path, None)[2] == template_sha256("{{ new }}")
    before = hashes(tmp_path, None)[0]
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    assert hashes(tmp_path, None)[0] != before
