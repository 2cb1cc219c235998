"""Report style: how long a report is, in which language it is written, and which form the user wants."""

import re
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_TEMPLATE_CHARS = 4_000
"""Maximum number of characters of a template."""

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class ReportLength(StrEnum):
    BRIEF = "brief"
    """About 200 words."""
    STANDARD = "standard"
    """About 800 to 1,500 words."""
    LONG = "long"
    """Up to 10,000 words, written section by section."""


class ReportStyle(BaseModel):
    """What the user asks of the form of a report. It never changes the rules for citations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: ReportLength | None = Field(
        default=None,
        description="brief: about 200 words. standard: 800 to 1,500. long: up to 10,000, in sections. "
        "null: as long as the question needs.",
    )
    language: str | None = Field(
        default=None,
        max_length=35,
        description="Language of the report as a tag, such as zh. null: the language of the question.",
        examples=["zh"],
    )
    template: str = Field(
        default="",
        max_length=MAX_TEMPLATE_CHARS,
        description="Headings of the report, or other instructions on its form. Empty: none.",
    )

    @field_validator("language")
    @classmethod
    def _check_language(cls, tag: str | None) -> str | None:
        if tag is not None and not _LANGUAGE.fullmatch(tag):
            raise ValueError(f"{tag[:40]!r} is not a language tag; use one such as zh, de or pt-BR")
        return tag

    @field_validator("template")
    @classmethod
    def _check_template(cls, text: str) -> str:
        if "\0" in text:
            raise ValueError("the template contains a NUL character; remove it")
        return text.strip()

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return self.length is None and self.language is None and not self.template
