"""Words that people search for, in English and in Chinese."""

import pytest

from offing.library.word_query import (
    MAX_EXCERPT_CHARS,
    cut_excerpt,
    find_best_text,
    list_indexed_terms,
    locate_terms,
    parse_word_query,
)

SENTENCE = "The pool keeps its connections open; 连接池使用Postgres数据库缓存查询结果."


def matches(query: str, text: str) -> bool:
    """Whether every part of the query is in the text, as the index finds it."""
    parsed = parse_word_query(query)
    terms = set(list_indexed_terms([text]))
    last = any(term.startswith(parsed.beginning) for term in terms) or (
        bool(parsed.last_terms) and terms.issuperset(parsed.last_terms)
    )
    return terms.issuperset(parsed.terms) and (last or not parsed.beginning)


@pytest.mark.parametrize(
    "query",
    [
        "connection",
        "CONNECTING pools",
        "open conn",
        "p",
        "postgres",
        "缓存",
        "数据库",
        "缓",
        "使用Postgres",
        "池 postg",
        "连接池 the",
    ],
)
def test_a_text_is_found_by_words_in_any_form_and_by_the_beginning_of_the_last(query: str) -> None:
    assert matches(query, SENTENCE)


@pytest.mark.parametrize("query", ["conn open", "connection mysql", "库数", "索引", "connection zzz"])
def test_a_text_without_one_of_the_words_is_not_found(query: str) -> None:
    assert not matches(query, SENTENCE)


@pytest.mark.parametrize("query", ["???", "the ", "of the ", "—"])
def test_a_query_of_stop_words_or_signs_is_empty(query: str) -> None:
    assert parse_word_query(query).is_empty


def test_the_text_with_most_words_is_shown() -> None:
    texts = ["Pools of water", "A pool of connections", "Connections of a pool"]
    assert find_best_text(parse_word_query("connection pool"), texts) == 1
    assert find_best_text(parse_word_query("rivers"), texts) is None


def test_an_excerpt_is_short_and_has_the_word() -> None:
    text = "Nothing of interest is said here. " * 30 + "Rivers carry salt. " + "And more of the same. " * 30
    excerpt = cut_excerpt(parse_word_query("river"), text)
    assert len(excerpt) <= MAX_EXCERPT_CHARS
    assert "Rivers carry salt" in excerpt
    assert (excerpt[0], excerpt[-1]) == ("…", "…")
    chinese = "无关的文字" * 80 + "河流带来盐分" + "无关的文字" * 80
    assert "河流" in cut_excerpt(parse_word_query("河流"), chinese)


def test_a_short_text_is_its_own_excerpt() -> None:
    assert cut_excerpt(parse_word_query("salt"), "Why is\nthe sea salt?") == "Why is the sea salt?"


@pytest.mark.parametrize(
    ("query", "line", "marked"),
    [
        ("connect", "The connection of connecting pools", ["connection", "connecting"]),
        ("salt sea", "Why is the sea salt? A salty sea.", ["sea", "salt", "sea"]),
        ("河流", "关于河流与海洋", ["河流"]),
        ("FastAPI 河", "使用FastAPI的河流与河", ["FastAPI", "河流", "河"]),
        ("river", "no such word", []),
    ],
)
def test_the_words_of_a_query_are_located_in_any_form(query: str, line: str, marked: list[str]) -> None:
    assert [line[start:end] for start, end in locate_terms(parse_word_query(query), line)] == marked
