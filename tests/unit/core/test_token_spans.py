"""Which tokens a range of text is, however the tokenizer cuts it."""

from offing.core.tokens import CompletionSpan, SpanKind, TokenSpan, locate_token_spans

TEXT = "SWITCH r6 t5 r6 e0"
SPANS = (
    CompletionSpan(SpanKind.SWITCH, 0, 6),
    CompletionSpan(SpanKind.SUBGOAL, 7, 9),
    CompletionSpan(SpanKind.ACTION, 10, 18),
)


def test_a_token_that_begins_with_the_space_before_its_word_belongs_to_the_word() -> None:
    pieces = (b"SWITCH", b" r6", b" t5", b" r6", b" e0", b"")
    assert locate_token_spans(TEXT, pieces, SPANS) == (
        TokenSpan(SpanKind.SWITCH, 0, 1),
        TokenSpan(SpanKind.SUBGOAL, 1, 2),
        TokenSpan(SpanKind.ACTION, 2, 6),
    )


def test_a_token_across_an_edge_belongs_to_where_it_begins_and_white_space_alone_to_none_between_spans() -> None:
    pieces = (b"SWI", b"TCH r", b"6", b" ", b"t5 r6 e0")
    assert locate_token_spans(TEXT, pieces, SPANS) == (
        TokenSpan(SpanKind.SWITCH, 0, 2),
        TokenSpan(SpanKind.SUBGOAL, 2, 3),
        TokenSpan(SpanKind.ACTION, 4, 5),
    )
