"""A task as a file or a request describes it: a question with its scope, and its reference if one is known."""

from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints, ValidationError, field_validator, model_validator

from offing.core.errors import InvalidInput
from offing.core.scoring import Criterion, Reference, ReferenceEvidence
from offing.core.url import InvalidUrl, ParsedUrl, parse_url
from offing.core.web_domains import MAX_DOMAINS, normalize_domains

MAX_FILE_BYTES = 256 * 2**20
"""Maximum bytes of a task file."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8_000)]


class TaskEvidence(BaseModel, frozen=True, extra="forbid"):
    """Where an answer is stated: its words, a range of a source, or both."""

    quote: str = Field(default="", max_length=20_000)
    source: str = Field(default="", max_length=4_096, description="Id or title of a source in the document library.")
    start: int | None = Field(
        default=None, ge=0, description="First code point of the evidence in the text of the source."
    )
    end: int | None = Field(default=None, ge=0)
    document: str = Field(default="", max_length=4_096, description="Informational. It is not compared.")
    relation: str = Field(default="", max_length=200)
    entity: str = Field(default="", max_length=1_000)

    @model_validator(mode="after")
    def _says_where(self) -> "TaskEvidence":
        if not self.quote.strip() and not self.source.strip():
            raise ValueError("give a quote, a source, or both")
        return self


class TaskScope(BaseModel, frozen=True, extra="forbid"):
    """What a run of the task may see."""

    collections: list[str] = Field(
        default=[], max_length=100, description="Collections of the document library. Empty: all."
    )
    sources: list[UUID] = Field(default=[], max_length=1_000, description="Empty: all sources of the collections.")
    environment: str = Field(
        default="",
        max_length=200,
        description="`NAME:SPEC` of an environment to use instead of the library. Without `NAME:`, it is `world`.",
    )
    web: bool = Field(default=False, description="Whether runs may search the web and read public pages, live.")
    pages: list[Annotated[str, StringConstraints(min_length=1, max_length=4_096)]] = Field(
        default=[],
        max_length=200,
        description="URLs of recorded pages: runs may read these and no others, and always the same text of each.",
    )
    only_domains: list[str] = Field(default=[], max_length=MAX_DOMAINS, description="The only domains of the web.")
    excluded_domains: list[str] = Field(default=[], max_length=MAX_DOMAINS, description="Domains not to be used.")
    code: bool = Field(default=False, description="Whether runs may run Python in a sandbox.")
    mcp: list[Annotated[str, StringConstraints(min_length=1, max_length=64)]] = Field(
        default=[], max_length=20, description="Names of the operator's MCP servers whose tools runs may use."
    )
    mcp_pins: dict[str, Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]] = Field(
        default={}, description="Hash of the approved tool list by server. A server without one may have any."
    )
    tool_policy: str = Field(default="", max_length=64, description="Name of a tool policy. Empty: the default one.")

    @field_validator("only_domains", "excluded_domains")
    @classmethod
    def _normalize_domains(cls, texts: list[str]) -> list[str]:
        domains = normalize_domains(texts)
        if isinstance(domains, InvalidUrl):
            raise ValueError(domains.problem)
        return domains

    @field_validator("pages")
    @classmethod
    def _normalize_pages(cls, urls: list[str]) -> list[str]:
        parsed = [parse_url(url) for url in urls]
        for target in parsed:
            if isinstance(target, InvalidUrl):
                raise ValueError(target.problem)
        return list(dict.fromkeys(target.url for target in parsed if isinstance(target, ParsedUrl)))

    @model_validator(mode="after")
    def _is_consistent(self) -> "TaskScope":
        if self.web and self.pages:
            raise ValueError("give `web` for live pages or `pages` for recorded ones, not both")
        if (self.only_domains or self.excluded_domains) and not self.web:
            raise ValueError("`only_domains` and `excluded_domains` limit live pages, so they need `web`")
        if unnamed := self.mcp_pins.keys() - set(self.mcp):
            raise ValueError(f"`mcp_pins` has {min(unnamed)}, which is not in `mcp`")
        return self


class TaskCriterion(BaseModel, frozen=True, extra="forbid"):
    """One criterion of a rubric."""

    text: Text = Field(description="What a good report contains, in words that a judge can check.")
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="Weight in the value of the rubric.")
    rejected: str = Field(
        default="",
        max_length=8_000,
        description="A sentence that a good report does not state. A judge reads it as a quote, not as a criterion.",
    )


class TaskSpec(BaseModel, frozen=True, extra="forbid"):
    """A task to store.

    Without `answers` the correct answer is unknown; an empty list means that the task cannot be answered.
    """

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=8_000)]
    answers: list[Text] | None = Field(default=None, max_length=100)
    answer: Text | None = Field(default=None, description="The same as `answers` with a single answer.")
    evidence: list[TaskEvidence] = Field(default=[], max_length=200)
    rubric: list[TaskCriterion] | Text = Field(
        default=[], max_length=8_000, description="Criteria of a good report. A text is a single criterion."
    )
    scope: TaskScope = TaskScope()
    name: str = Field(default="", max_length=200, description="Id of the task in its dataset.")
    split: str = Field(default="", max_length=100)
    difficulty: float | None = Field(default=None, allow_inf_nan=False)
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(default=[], max_length=50)
    dataset: str = Field(default="", max_length=200, description="Informational. The request names the dataset.")
    kind: str = Field(default="", max_length=100, description="Informational.")
    hops: int | None = Field(default=None, description="Informational.")

    @model_validator(mode="after")
    def _one_kind_of_answer(self) -> "TaskSpec":
        if self.answer is not None and self.answers is not None:
            raise ValueError("give `answer` or `answers`, not both")
        return self

    @property
    def reference(self) -> Reference | None:
        """The reference of the task. `None` if it has no answers, no evidence and no rubric."""
        answers = [self.answer] if self.answer is not None else self.answers
        if answers is None and not self.evidence and not self.rubric:
            return None
        evidence = tuple(_build_evidence(item) for item in self.evidence)
        return Reference(None if answers is None else tuple(answers), evidence, self._criteria())

    def _criteria(self) -> tuple[Criterion, ...]:
        if isinstance(self.rubric, str):
            return (Criterion(self.rubric),)
        return tuple(Criterion(item.text, item.weight, item.rejected) for item in self.rubric)

    def scope_of_run(self) -> dict[str, Any]:
        """Return the scope as a run stores it, without fields that limit nothing."""
        fields = {name: value for name, value in self.scope.model_dump(mode="json").items() if value}
        return fields | ({"web": True} if self.scope.pages else {})


def read_task_file(path: Path, max_tasks: int | None = None) -> list[TaskSpec]:
    """Read the tasks of a file with one JSON object per line. Empty lines are skipped.

    If `max_tasks` is `None`, all tasks are read. Raises InvalidInput with the line.
    """
    if not path.is_file():
        raise InvalidInput(str(path), "the path is not a file", "Use a file with one JSON object per line.")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidInput(str(path), f"the file is larger than {MAX_FILE_BYTES:,} bytes", "Split the file.")
    task_specs: list[TaskSpec] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if max_tasks is not None and len(task_specs) >= max_tasks:
                break
            if line.strip():
                task_specs.append(parse_task_line(line, f"{path.name} line {number}"))
    return task_specs


def parse_task_line(line: str | bytes, location: str) -> TaskSpec:
    """Parse one task. Raises InvalidInput with a message that begins with `location`."""
    try:
        return TaskSpec.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join([location, *map(str, first["loc"])])
        names = "question, answers, evidence, rubric, scope, name, split, difficulty and tags"
        raise InvalidInput(where, first["msg"], f"A task is a JSON object with the fields {names}.") from None


def _build_evidence(evidence: TaskEvidence) -> ReferenceEvidence:
    """Return reference evidence. Positions are used only with a source; otherwise only the words are compared."""
    if not evidence.source.strip():
        return ReferenceEvidence(evidence.quote)
    return ReferenceEvidence(evidence.quote, evidence.source, evidence.start, evidence.end)
