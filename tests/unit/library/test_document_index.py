"""What the index keeps of a text."""

from offing.library.document_index import build_index

SECTION = "Words about keeping sockets open for a later request of the same kind and nothing else at all. " * 6


def weights(text: str, term: str, **known: str) -> dict[int, float]:
    index = build_index(text, **known)
    return {at: w for p in index.postings if p.term == term for at, w in zip(p.passages, p.weights, strict=True)}


def test_a_repeated_word_weighs_more_but_less_and_less() -> None:
    one, two, four = (weights("pool " * n + SECTION, "pool")[0] for n in (1, 2, 4))
    assert one < two < four
    assert two - one > (four - two) / 2


def test_a_word_in_a_heading_counts_for_the_section() -> None:
    text = f"# Pools\n\n{SECTION}\n\n# Agents\n\n{SECTION}"
    assert set(weights(text, "agent")) == {1}


def test_title_and_name_count_for_every_passage() -> None:
    text = f"{SECTION}\n\n{SECTION}\n\n{SECTION}"
    passages = len(build_index(text).passages)
    assert passages > 1
    assert len(weights(text, "balanc", title="Balancing")) == passages
    assert len(weights(text, "roundrobinpool", name="api/RoundRobinPool.md")) == passages


def test_a_word_in_a_short_passage_weighs_more() -> None:
    assert weights("pool of sockets", "pool")[0] > weights(f"pool {SECTION}", "pool")[0]


def test_a_chinese_passage_does_not_count_as_long_for_having_a_term_per_character() -> None:
    chinese = "池" + "它保持连接打开" * 10
    pair = "池它"
    english = "pool " + "socket " * 28
    assert abs(weights(chinese, pair)[0] - weights(english, "pool")[0]) < 0.01


def test_each_posting_lists_its_passages_once_in_order() -> None:
    for posting in build_index(f"# A\n\n{SECTION}\n\n# B\n\n{SECTION}").postings:
        assert list(posting.passages) == sorted(set(posting.passages))
        assert all(0 < w < 1 for w in posting.weights)
