"""Options of commands: one frozen dataclass per command, with the help text below each field.

This module has the options of commands that import their work when they are called. Modules that
cyclopts imports by name define their own. This module imports none of the work, so that `--help` is
fast.
"""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

from cyclopts import Parameter
from cyclopts.validators import Number

Flag = Annotated[bool, Parameter(negative="")]
"""An option without a value, and without a `--no-` form."""

Json = Annotated[bool, Parameter(name="--json", negative="")]

Paths = Annotated[tuple[Path, ...], Parameter(negative="")]
"""Paths, by repeating the option."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DevOptions:
    path: Paths = ()
    """Folder of graphs, or of a LangGraph project. Repeat the option for several. Default: the current folder."""
    host: str | None = None
    """Address to listen on. Default: this machine only."""
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None
    """Port of the server. 0 selects a free one. Default: 2024 for a LangGraph project, whose clients connect to it;
    otherwise OFFING_PORT."""
    web_port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None
    """Port of the web UI of a LangGraph project. 0 selects a free one. Default: OFFING_PORT, or a free one if 8400
    is in use."""
    no_browser: Flag = False
    """Do not open the web UI in a browser."""
    no_reload: Flag = False
    """Do not load the graphs again when their files change."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class AskOptions:
    """Options of `offing ask`."""

    question: str
    """The question to answer."""
    _: KW_ONLY
    docs: tuple[Path, ...] = ()
    """A folder of documents to index and search. Repeat the option for several. Unchanged documents
    are not indexed again. Default: the whole library."""
    follow_up: str = ""
    """A run id, or the last characters of an id, whose report the question is about. The new run keeps the scope,
    engines and tool policy of that run where options name no others."""
    kind: Literal["auto", "question", "edit", "research"] | None = None
    """What a follow-up does: answer a question on the report from its evidence, edit the report, or research and
    merge the findings into it. Default: auto, which lets the run decide."""
    graph: str | None = None
    """The graph to run. Default: agentflow, or the graph of the run that is followed."""
    engines: Annotated[tuple[str, ...], Parameter(name="--engine")] = ()
    """`role=engine`, such as `planner=litellm:openai/gpt-5-mini`, or `all=…` for every role."""
    preset: str = ""
    """A preset, as in `offing preset list`: its engines for roles that --engine does not name, and its limits unless
    options name others. Default: that of `offing preset default`, unless --engine or --follow-up is used."""
    depth: Literal["quick", "standard", "deep"] | None = None
    """How the run uses its turns, and their maximum number: quick 4, standard 12, deep 40. A deep run covers all
    parts of the question first, then what is contested or missing, until it finds nothing new. Default: the depth of
    the preset, or else standard."""
    max_turns: int | None = None
    """Maximum number of turns, instead of that of `--depth`."""
    max_cost_usd: float | None = None
    """Maximum cost of the run in US dollars."""
    max_seconds: float | None = None
    """Maximum working time in seconds. The run then writes its report from what it has."""
    web: bool | None = None
    """Allow web search and reading public web pages. Default: no, or as in the run that is followed."""
    code: bool | None = None
    """Allow running Python in a sandbox without network access. Default: no, or as in the run that is followed."""
    mcp: tuple[str, ...] = ()
    """Name of an MCP server whose tools the run may use, as in `offing mcp list`. Repeat the option
    for several."""
    only_domain: tuple[str, ...] = ()
    """A domain, with its subdomains, that the web is limited to. Repeat the option for several. Default: all."""
    not_domain: tuple[str, ...] = ()
    """A domain, with its subdomains, that the run may not use. Repeat the option for several."""
    offline: bool | None = None
    """Let nothing leave this machine: the run is rejected if a model, a tool or the search of the library is elsewhere.
    Default: no, or as in the run that is followed."""
    clarify: bool = False
    """Let the run ask what is unclear in the question before it researches."""
    review_plan: bool = False
    """Let the run show its plan before it follows it."""
    length: Literal["brief", "standard", "long"] | None = None
    """Length of the report: brief about 200 words, standard 800 to 1,500, long up to 10,000. Default: as
    long as the question needs."""
    language: str | None = None
    """Language of the report as a tag, such as zh. Default: the language of the question."""
    template: Path | None = None
    """A text file with the headings of the report, or with other instructions on its form."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""

    @property
    def turn_limit(self) -> int:
        from offing.core.run import TURNS_BY_DEPTH, Depth

        depth = Depth(self.depth or Depth.STANDARD)
        return TURNS_BY_DEPTH[depth] if self.max_turns is None else self.max_turns


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ForkOptions:
    """Options of `offing fork`. `None` means the value of the original run."""

    run: str
    """A run id or the last characters of an id."""
    _: KW_ONLY
    at: int | None = None
    """Number of the last step to keep, as in `offing show`. Default: the last step before the end of
    the run."""
    engines: Annotated[tuple[str, ...], Parameter(name="--engine")] = ()
    """`role=engine` for later calls, such as `planner=litellm:openai/gpt-5-mini`, or `all=…` for every
    role."""
    max_turns: int | None = None
    """Maximum number of turns, including the kept ones. Default: the limit of the original run."""
    max_cost_usd: float | None = None
    """Maximum cost in US dollars, including the kept steps."""
    max_seconds: float | None = None
    """Maximum working time in seconds, including the kept steps."""
    message: str = ""
    """A user message for the planner."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunListOptions:
    """Options of `offing runs`."""

    search: str = ""
    """Words that all occur in the question, the given title, the tags or the latest report, in any form."""
    status: Literal["queued", "running", "waiting", "paused", "done", "failed", "cancelled"] | None = None
    """Only runs with this status."""
    group: Literal["active", "ended"] | None = None
    """Only runs that have not ended, or only those that have."""
    waiting: Flag = False
    """Only runs with an input request that waits for a person."""
    graph: str | None = None
    """Only runs of this graph."""
    tag: str | None = None
    """Only runs with this tag."""
    pinned: bool | None = None
    """Only pinned runs, or with --no-pinned the others."""
    archived: Flag = False
    """Only archived runs."""
    all: Flag = False
    """Archived runs, too."""
    since: str | None = None
    """Only runs created at this date or time or later, such as 2026-11-01 or 2026-11-01T09:30. Times without an
    offset are local."""
    until: str | None = None
    """Only runs created before this date or time."""
    cites: UUID | None = None
    """Only runs with a report that cites this document, by the id that `offing collections documents` shows."""
    order: Literal["best", "newest", "oldest", "cost", "duration"] | None = None
    """The best match of a search, the newest, the oldest, or the most expensive or longest of the ended runs first.
    Default: best with --search, else newest."""
    limit: int = 20
    """Maximum number of runs."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizeOptions:
    """Options of `offing organize`. What no option names stays unchanged."""

    title: str | None = None
    """A title. Empty: the title of the run's report again."""
    tags: Annotated[tuple[str, ...], Parameter(name="--tag", negative="")] = ()
    """A tag to add. Repeat the option for several."""
    untag: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """A tag to remove. Repeat the option for several."""
    pin: bool | None = None
    """Pin the run, or with --no-pin unpin it."""
    archive: bool | None = None
    """Archive the run, or with --no-archive return it to the list."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """Options of `offing rollouts collect`."""

    tasks: str
    """A folder with `questions.jsonl` and `documents`, a file with one JSON object per line with
    `question`, `answers` and other fields, or `NAME:SPEC` of an environment, such as
    `world:train-12@500`."""
    graph: str = "agentflow"
    """The graph to run."""
    max_tasks: int | None = None
    """Maximum number of tasks. For an environment, the exact number. Default: all tasks of a file, 100
    of an environment."""
    hops: str = "1-4"
    """Minimum and maximum number of tool calls per task of an environment."""
    kinds: Annotated[tuple[str, ...], Parameter(name="--kind")] = ()
    """Kinds of tasks of an environment. Default: all kinds."""
    compositions: str = ""
    """Part of the tasks of an environment by what they combine: `trained` or `held-out` for worlds.
    Default: all."""
    group_size: int = 8
    """Number of runs per task."""
    policies: Annotated[tuple[str, ...], Parameter(name="--policy")] = ()
    """`role=NAME@VERSION` lets a registered policy version answer a role; `planner+compact=…` selects
    a prompt format."""
    engines: Annotated[tuple[str, ...], Parameter(name="--engine")] = ()
    """`role=engine` for other roles, such as `planner=rules:oracle`, or `all=…`."""
    max_turns: int = 12
    """Maximum number of turns per run."""
    max_tokens: int | None = None
    """Maximum number of tokens per run."""
    max_cost_usd: float | None = None
    """Maximum cost per run in US dollars."""
    scorers: Annotated[tuple[str, ...], Parameter(name="--scorer")] = ()
    """`NAME`, `NAME=WEIGHT`, or `NAME=WEIGHT:{JSON options}`. Default: exact_match, if every task has
    a reference answer."""
    judge_max_calls: int | None = None
    """Maximum number of calls of judges. A batch that has spent it stops. Default: no limit."""
    judge_max_usd: float | None = None
    """Maximum cost of judges in US dollars. A batch that has spent it stops. Default: no limit."""
    durability: Literal["exit", "sync"] | None = None
    """`exit` writes a run when its slice ends and repeats the slice after a crash. `sync` writes every
    step. Default: `exit` if the turns fit in one slice."""
    max_attempts: int = 3
    """Maximum number of runs per member of a group. A run is retried only after an infrastructure
    error."""
    seed: int = 0
    """The same seed and tasks give the same seeds of runs."""
    dataset: str = ""
    """Name under which the tasks are stored. Default: the name of the dataset, of its folder or
    file, or `NAME:SPEC`."""
    name: str = ""
    """Name of the rollout batch."""
    tags: Annotated[tuple[str, ...], Parameter(name="--tag")] = ()
    """A tag to store with every group. Repeat the option for several tags."""
    idempotency_key: str | None = None
    """A repeated request with the same key returns the same batch, and completes it if it was
    interrupted."""
    wait: Flag = False
    """Return when all groups have ended."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PromoteOptions:
    """Options of `offing policy promote`."""

    policy: str
    """NAME@VERSION of the version to promote."""
    _: KW_ONLY
    dataset: str | None = None
    """Compare evaluations on these tasks. Default: the latest dataset that both versions were
    evaluated on."""
    greedy: Flag = False
    """Compare greedy evaluations only."""
    experiment: str | None = None
    """Compare by this experiment of `offing evaluate` instead, an id or the last characters of an id."""
    metric: str | None = None
    """Scorer whose values decide. Default: the one with a weight, or the weighted mean."""
    canary: Flag = False
    """Require instead that the version, as the canary, was found better than the active version."""
    margin: float = 0.0
    """Maximum difference by which the mean reward may be lower than the active version's."""
    by_mean: Flag = False
    """Let the mean difference decide instead of the lower end of its interval. An equal version then
    passes half of the time."""
    not_worse: Annotated[tuple[str, ...], Parameter(name="--not-worse")] = ()
    """METRIC=MARGIN of a metric that must not be worse by more than a margin, such as `tokens=10%` or
    `turns=0.5`; also `cost_usd`, `seconds` and every scorer. Repeat the option for several."""
    max_kl: float | None = None
    """Maximum KL divergence from the policy that it was trained from, in nats per token. Default: no
    limit."""
    force: Flag = False
    """Promote without a comparison."""
    replica_urls: Annotated[tuple[str, ...], Parameter(name="--replica")] = ()
    """URL of a vLLM server that must load the version first, such as `http://gpu-1:8000/v1`. Repeat
    the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Options of `offing policy evaluate`."""

    policy: str
    """NAME@VERSION of the version to evaluate."""
    _: KW_ONLY
    dataset: str
    """Stored tasks that were not used for training."""
    graph: str
    """The graph to run."""
    role: str = "planner"
    """The role that the policy answers."""
    prompt_format: str = ""
    """Prompt format of the role, such as `compact`."""
    rollouts_per_task: int = 1
    """Number of runs per task."""
    sampled: Flag = False
    """Sample at temperature 1. Default: greedy."""
    seed: int = 0
    """Seed of the runs. Versions can be compared only with the same seed."""
    max_tasks: int = 200
    """Maximum number of tasks."""
    max_turns: int = 12
    """Maximum number of turns per run."""
    engines: Annotated[tuple[str, ...], Parameter(name="--engine")] = ()
    """`role=engine` for other roles, or `all=…`."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of `offing evaluate`."""

    dataset: str
    """A folder with `questions.jsonl` and `documents`, a file with one JSON object per line, `NAME:SPEC`
    of an environment such as `world:train-1@50`, or a TOML file that contains all of this."""
    _: KW_ONLY
    configurations: Annotated[tuple[str, ...], Parameter(name="--config")] = ()
    """`NAME="graph=… role=engine max_turns=…"`. Repeat the option; the others are compared with the first
    one. Default: one configuration with `--graph` and `--engine`."""
    graph: str = "agentflow"
    """Graph of configurations that name none."""
    engines: Annotated[tuple[str, ...], Parameter(name="--engine")] = ()
    """`role=engine` for all configurations, or `all=…`. A configuration may replace it."""
    max_turns: int = 12
    """Maximum number of turns per question."""
    max_tokens: int | None = None
    """Maximum number of tokens per question."""
    max_cost_usd: float | None = None
    """Maximum cost per question in US dollars."""
    max_seconds: float | None = None
    """Maximum working time per question in seconds."""
    max_questions: int | None = None
    """Maximum number of questions, chosen at random by `--seed`. Default: all of a dataset, 100 of an
    environment."""
    seed: int = 0
    """Seed of the choice of questions and of the runs."""
    scorers: Annotated[tuple[str, ...], Parameter(name="--scorer")] = ()
    """`NAME`, `NAME=WEIGHT`, or `NAME=WEIGHT:{JSON options}`. Default: what the dataset permits."""
    judge: str | None = None
    """Engine that compares the reports of each question in both orders, such as
    `litellm:openai/gpt-5-mini`."""
    judge_max_calls: int | None = None
    """Maximum number of calls of judges per configuration, those of scorers included. When it is spent,
    the experiment stops. Default: no limit."""
    judge_max_usd: float | None = None
    """Maximum cost of judges per configuration in US dollars. Default: no limit."""
    name: str = ""
    """Name of the experiment."""
    again: Flag = False
    """Measure again, although the same experiment is complete."""
    paths: Annotated[Paths, Parameter(name="--path")] = ()
    """A folder or a .py file with a graph that is not installed. Repeat the option for several."""
    as_json: Json = False
    """Print only JSON on standard output."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServeEngineOptions:
    """Options of `offing engine serve`."""

    policy_dir: Path | None = None
    """A folder with one folder per version, named NAME@VERSION. Default: OFFING_POLICY_DIR."""
    policies: Annotated[tuple[str, ...], Parameter(name="--policy")] = ()
    """`NAME@VERSION=FOLDER`. Repeat the option for several versions."""
    socket: Path | None = None
    """A Unix socket that only this user can open. Default: a port, with the bearer token in
    OFFING_ENGINE_KEY."""
    host: str = "127.0.0.1"
    """Address to listen on. Without OFFING_ALLOW_REMOTE=1, only a loopback address."""
    port: int = 8410
    """Port to listen on."""
    device: str | None = None
    """Device, such as cpu or cuda:1. Default: a GPU if there is one."""
    threads: int | None = None
    """Number of CPU threads. Default: the number of cores minus one."""
    max_rows: int = 128
    """Maximum number of requests that decode at the same time."""
    max_context_tokens: int = 32_768
    """Maximum number of tokens of prompt and completion together, at most what the model allows."""
