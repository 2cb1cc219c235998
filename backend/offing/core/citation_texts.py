"""Why a citation is rejected, in English, with a code for each reason. Reports store the English text."""

from offing.core.coded_text import TextCatalog

REJECTION_TEXTS = TextCatalog(
    {
        "source_unnamed": "An unnamed source was not retrieved in this run.",
        "source_not_retrieved": "{evidence} was not retrieved in this run.",
        "text_missing": "The stored text of {evidence} is not available.",
        "quote_not_found": "The quoted words are not in {evidence}: \u201c{quote}\u201d",
    }
)
