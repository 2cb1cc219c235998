"""Whether the files of a policy folder are still what was registered, and which of them is not."""

import os
from pathlib import Path

import pytest

from offing.models.policy_folder import PolicyHashes, describe_changed_files, describe_damage, hash_policy, write_sums

FILES = {
    "config.json": '{"layers": 2}',
    "model.safetensors": "weights of a small planner",
    "tokenizer.json": '{"words": ["a", "b"]}',
    "tokenizer_config.json": '{"eos": "<end>"}',
    "chat_template.jinja": "{{ messages }}",
}

WEIGHTS = ["config.json", "model.safetensors"]
"""What has one hash together."""

BASE = PolicyHashes("b" * 64, "t" * 64, "c" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"])
@pytest.mark.parametrize("noted", [False, True])
def test_a_changed_file_is_named(folder: Path, name: str, noted: bool) -> None:
    registered = hash_policy(folder, None)
    if noted:
        write_sums(folder)
    assert describe_damage(folder, registered, None) == ""
    (folder / name).write_text(FILES[name].replace("a", "A").replace("e", "E"))
    message = describe_damage(folder, registered, None)
    told_of = [other for other in FILES if other in message]
    assert told_of == ([name] if noted or name not in WEIGHTS else WEIGHTS)
    assert message.endswith("is missing or differs from the registered file")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_damage(folder: Path, name: str) -> None:
    registered = hash_policy(folder, None)
    (folder / name).unlink()
    assert describe_damage(folder, registered, None)


def test_the_list_of_its_files_knows_those_that_no_hash_is_registered_of(folder: Path) -> None:
    registered = hash_policy(folder, None)
    write_sums(folder)
    (folder / "tokenizer_config.json").write_text('{"eos": "<other>"}')
    assert describe_changed_files(folder).startswith("tokenizer_config.json is missing or differs")
    assert describe_damage(folder, registered, None).startswith("tokenizer_config.json ")


def test_files_that_came_later_are_no_damage(folder: Path) -> None:
    registered = hash_policy(folder, None)
    write_sums(folder)
    (folder / "README.md").write_text("about this version")
    assert describe_damage(folder, registered, None) == ""


def test_an_adapter_answers_for_itself_and_its_base(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"r": 8}')
    (folder / "tokenizer.json").unlink()
    registered = hash_policy(folder, BASE)
    assert (registered.tokenizer, registered.template) == (BASE.tokenizer, BASE.template)
    assert describe_damage(folder, registered, BASE) == ""
    assert describe_damage(folder, registered, PolicyHashes("d" * 64, BASE.tokenizer, BASE.template))


def test_a_file_is_read_again_when_it_has_changed_though_its_size_has_not(folder: Path) -> None:
    registered = hash_policy(folder, None)
    file = folder / "model.safetensors"
    before = file.stat().st_mtime_ns
    file.write_text(FILES[file.name].swapcase())
    os.utime(file, ns=(before + 1, before + 1))
    assert describe_damage(folder, registered, None)
