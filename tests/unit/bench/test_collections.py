"""The scores of the commands that measure retrieval and answers on public collections."""

import json
from pathlib import Path

import pytest

from tests.bench.answers import load_squad
from tests.bench.retrieval import Collection, Document, compute_ndcg, rank_by_index


def test_ndcg_falls_with_the_rank_of_a_relevant_document() -> None:
    assert compute_ndcg(["a", "b"], frozenset({"a"})) == 1
    assert compute_ndcg(["b", "a"], frozenset({"a"})) == pytest.approx(0.6309, abs=1e-4)
    assert compute_ndcg(["b"], frozenset({"a"})) == 0


def test_a_repeated_word_counts_only_if_repeats_are_counted() -> None:
    texts = {"a": "tide tide gauge", "b": "tide pilot", "c": "tide"}
    collection = Collection({name: Document("", text) for name, text in texts.items()}, {}, {})
    assert rank_by_index(collection)("gauge gauge pilot")[0] == "a"
    once = rank_by_index(collection, counts_repeats=False)
    assert once("pilot pilot gauge") == once("pilot gauge")


def test_a_gold_sentence_is_the_one_that_contains_the_answer(tmp_path: Path) -> None:
    context = "The pier is old. It was built in 1901. It is red."
    answer = {"answer_start": context.index("1901"), "text": "1901"}
    paragraph = {"context": context, "qas": [{"id": "q", "question": "When was it built?", "answers": [answer]}]}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"data": [{"title": "Pier", "paragraphs": [paragraph]}]}))
    collection = load_squad("set", path)
    (text,) = collection.documents.values()
    gold = collection.questions[0].gold
    assert "".join(text[n] for n in sorted(gold)) == "Itwasbuiltin1901."
