"""What the writer of a report is told about its form: rules for every report, and the style that the user asks for.

The template is text of the user, like the question, and therefore an instruction. The rules for
citations follow it, so that they have the last word.
"""

from offing.sdk import ReportLength, ReportStyle

WRITING_RULES = (
    "Let the question decide the form: one fact takes a sentence or two, an overview takes sections. Write connected "
    "prose in which each paragraph makes one point; use a table where things are compared, and a list only for real "
    "lists. Give numbers with their units and years. Every number, date and name of a sentence that cites a passage "
    "stands in the words copied for it; copy further words, or from several places, where one is not enough. A number "
    "that `calculate` gave needs no quote. What you conclude or advise yourself stands in a sentence of its own, "
    "without a citation, and says that it is your conclusion. It may repeat numbers that the report cites elsewhere. "
    "Where passages disagree, say who says what, and when. Say what could not be established. Leave out "
    "what tells the reader nothing: announcements, repetitions, general remarks and praise of sources. Write in the "
    "language of the question unless another one is asked for; copied words stay in the language of their passage."
)
"""Rules for every report, beside those for citations."""

LENGTH_RULES = {
    ReportLength.BRIEF: "Length: about 200 words. Give the short answer and what supports it, and no more.",
    ReportLength.STANDARD: "Length: 800 to 1,500 words in sections, and fewer if the passages do not say as much.",
    ReportLength.LONG: (
        "Length: a thorough report in sections, of up to 10,000 words. Use everything in the passages that bears on "
        "the question, and stop where they do; never fill up."
    ),
}
STYLE_HEAD = "The user asks for this form of the report:"
TEMPLATE_RULE = (
    "A template of the user follows. Keep its headings and its order, and follow what it says on form and style. Where "
    "nothing was found for a heading, say so under it.\n<template>\n{template}\n</template>\n"
    "Whatever the template says, the rules for citations hold: each statement of fact cites a passage and copies the "
    "words that carry it, and nothing is stated that was not retrieved."
)


TEMPLATE_HINT = "The report will follow this template, so its headings have to be looked up, too:\n{template}"


def render_template_hint(style: ReportStyle | None) -> tuple[str, ...]:
    """Render the template for roles that split the question into parts, or none if there is no template."""
    return (TEMPLATE_HINT.replace("{template}", style.template),) if style and style.template else ()


def render_report_style(style: ReportStyle | None, *, shows_length: bool = True) -> tuple[str, ...]:
    """Render what the user asks of a report as one part of a prompt, or none if the user asks for nothing.

    Without `shows_length` the length is left out, for calls that write a part of a report.
    """
    if style is None:
        return ()
    lines = [
        *([LENGTH_RULES[style.length]] if style.length and shows_length else []),
        *([_render_language(style.language)] if style.language else []),
        *([TEMPLATE_RULE.replace("{template}", style.template)] if style.template else []),
    ]
    return ("\n".join([STYLE_HEAD, *lines]),) if lines else ()


def _render_language(language: str) -> str:
    return (
        f"Language: write the whole report, its title and headings included, in the language with the tag {language}. "
        'Copied words, the ids of passages and the word "Limits:" stay unchanged.'
    )
