"""Where in its source a citation is, in English: a part of the position for each code."""

from offing.core.coded_text import TextCatalog

POSITION_TEXTS = TextCatalog(
    {
        "erased": "The source was deleted from the library.",
        "page": "page {number}",
        "section": "section \u201c{heading}\u201d",
        "line": "line {first}",
        "lines": "lines {first} to {last}",
        "near_beginning": "near the beginning",
        "near_end": "near the end",
        "part_of_way": "about {percent} % of the way through",
    }
)
