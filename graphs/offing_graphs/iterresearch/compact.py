"""The researcher asked in a small planner's words: it says only which look-up it makes, or that it answers.

Report and answer follow from what is known, by the rules that are made for a world. Built anew each round like every
workspace, so that words are numbered by this round's question, report and last result alone.
"""

from offing.sdk import Form, Message, SpanKind, TextSpan, Unusable
from offing.world.compact import Names, call_words, names_of, question_words, read_call, relation_word, values_words
from offing.world.solving import Known, Need, known_of
from offing_graphs.iterresearch.rules import answering, known_in, looking_up
from offing_graphs.iterresearch.shapes import Round, Stage, Workspace

ANSWER = "answer"


def render(given: Workspace) -> tuple[Message, ...]:
    """The question, what is known, the last call with its result, and `stop` in the final round."""
    names = _names(given)
    facts = tuple(f"known {_fact(k, names)}" for k in known_in(given))
    stop = ("stop",) if given.stage is Stage.FINAL else ()
    return (Message("user", (question_words(given.question), *facts, *_last(given, names), *stop)),)


def parse(text: str, given: Workspace) -> Round | Unusable:
    """A tool's, a relation's and an entity's word, or `answer`; only what the round allows."""
    if text.strip() == ANSWER:
        return answering(given) if given.stage is not Stage.FIRST else Unusable("Nothing is known yet; call a tool.")
    if given.stage is Stage.FINAL:
        return Unusable(f"No tool can be called any more; write {ANSWER}.")
    call = read_call(text, _names(given))
    return call if isinstance(call, Unusable) else looking_up(given, Need(call.relation, call.entity), call.tool)


def spans(text: str) -> tuple[TextSpan, ...]:
    """The whole of it."""
    said = text.strip()
    start = text.find(said)
    kind = SpanKind.ANSWER if said == ANSWER else SpanKind.ACTION
    return (TextSpan(kind, start, start + len(said)),) if said else ()


def write(output: Round, given: Workspace) -> str:
    """Raises InvalidInput for a call that is no look-up of something that has appeared."""
    if output.action is None:
        return ANSWER
    args = output.action.args
    return call_words(output.action.tool, str(args.get("relation")), str(args.get("entity")), _names(given))


def _names(given: Workspace) -> Names:
    return names_of(given.question, known_in(given))


def _last(given: Workspace, names: Names) -> tuple[str, ...]:
    """The last call with what it gave. Empty: there was none that these words can say."""
    if given.action is None or given.result is None:
        return ()
    fact = None if given.result.message else known_of(given.action.args, given.result.content)
    if fact is None:
        return ("result failed",)
    words = call_words(given.action.tool, fact.relation, fact.entity, names)
    return (f"{words} result {values_words(fact.values, names, closed=fact.closed)}",)


def _fact(known: Known, names: Names) -> str:
    values = values_words(known.values, names, closed=known.closed)
    return f"{relation_word(known.relation)} {names.word(known.entity)} {values}"


COMPACT = Form("compact", render, parse, spans, write)
