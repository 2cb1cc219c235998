"""What all API schemas share: their base class, pages of a list, and problems."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from offing.api.coded_texts import TEXTS, ProblemTextOut


class ApiModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def from_typed_values(cls, **values: Any) -> Self:
        """Return a model of these values without validation. Every field must be given, with a value of its type.

        It takes an eighth of the time of `model_construct`, which looks for defaults and aliases.
        """
        model = cls.__new__(cls)
        object.__setattr__(model, "__dict__", values)
        object.__setattr__(model, "__pydantic_fields_set__", set(values))
        object.__setattr__(model, "__pydantic_extra__", None)
        object.__setattr__(model, "__pydantic_private__", None)
        return model


class Page(ApiModel):
    next: str | None = Field(description="Cursor for the next page. null: this is the last page.")


class Problem(BaseModel):
    """RFC 9457 problem details. `field` and `remedy` say what to change."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    texts: dict[str, ProblemTextOut] = Field(default={}, description=f"{TEXTS} Fields: detail, remedy.")
