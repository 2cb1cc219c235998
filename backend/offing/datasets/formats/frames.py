"""FRAMES (Krishna et al. 2024): questions over two to fifteen Wikipedia articles, which the dataset only links.

The file is a table with a header, `.tsv` or `.csv`, with the columns `Prompt`, `Answer`, `reasoning_types`, and the
articles in `wiki_links` or in `wikipedia_link_1` and following. The titles of the articles are reference evidence. They
are compared with the titles of documents, so add the articles to the library under their own titles. The columns
are those of the published documentation; no published file was available when this was written.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from offing.core.errors import InvalidInput
from offing.datasets.dataset_format import DatasetFormat, PublishedEvidence, PublishedQuestion
from offing.datasets.records import get_file, iter_rows

_LINK = re.compile(r"https?://[^\s\"'\[\]<>]+")
_ARTICLE_PATH = "/wiki/"


def read_frames(path: Path) -> Iterator[PublishedQuestion]:
    """Read the questions of a file, or of the first table of a folder."""
    for number, (location, row) in enumerate(iter_rows(get_file(path, "*.tsv", "*.csv"))):
        prompt, answer = (_get_column(row, name, location) for name in ("Prompt", "Answer"))
        titles = dict.fromkeys(title for link in _list_links(row) if (title := _read_title(link)))
        yield PublishedQuestion(
            location,
            row.get("") or row.get("Unnamed: 0") or str(number),
            prompt,
            (answer,),
            tuple(PublishedEvidence(source=title) for title in titles),
            tags=tuple(dict.fromkeys(tag.strip() for tag in row.get("reasoning_types", "").split("|") if tag.strip())),
        )


def _get_column(row: Mapping[str, str], name: str, location: str) -> str:
    if not row.get(name, "").strip():
        raise InvalidInput(f"{location}.{name}", "the column is empty or missing", "Use the published table.")
    return row[name]


def _list_links(row: Mapping[str, str]) -> list[str]:
    columns = [value for name, value in row.items() if name == "wiki_links" or name.startswith("wikipedia_link_")]
    return [link.rstrip(",") for value in columns for link in _LINK.findall(value)]


def _read_title(link: str) -> str:
    """Return the title of the linked article. Empty for a link to something else."""
    _, article, title = urlsplit(link).path.partition(_ARTICLE_PATH)
    return unquote(title).replace("_", " ").strip() if article else ""


FORMAT = DatasetFormat(
    "frames",
    "Questions over several Wikipedia articles, which are only linked: a .tsv or .csv file",
    read_frames,
    license="Apache-2.0",
    source="FRAMES, test set",
    citation="Krishna et al. 2024: Fact, Fetch, and Reason: A Unified Evaluation of Retrieval-Augmented Generation. "
    "arXiv:2409.12941.",
)
