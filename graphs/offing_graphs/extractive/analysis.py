"""A question taken apart without a model, as the analysis that flows work from."""

from offing_graphs.extractive.agenda import CALCULATE
from offing_graphs.extractive.question import key_phrases, sub_questions
from offing_graphs.extractive.sums import expression
from offing_graphs.parts.shapes import Analysis, Case


def analysis_of(case: Case, tools: tuple[str, ...] = ()) -> Analysis:
    """The analysis of any role's case. `tools`: names of those that the run may use."""
    parts = sub_questions(case.question, tuple(e.question for e in case.earlier))
    phrases = key_phrases(case.question)[:5]
    sums = bool(expression(case.question))
    wanted = {CALCULATE} if sums else set(tools) - {CALCULATE}
    about = f"It is about {', '.join(phrases)}." if phrases else "It names nothing that could be looked up."
    return Analysis(
        summary=f"A question in {len(parts)} parts. {about}" if len(parts) > 1 else about,
        sub_questions=parts,
        skills=("arithmetic",) if sums else ("finding passages", "quoting"),
        relevant_tools=tuple(t for t in tools if t in wanted),
        considerations="Taken apart by its words alone; what a sentence means was not considered.",
    )
