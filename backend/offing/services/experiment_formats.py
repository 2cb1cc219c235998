"""Render the summary of an experiment as text of at most 100 columns, Markdown or CSV. Pure."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.model import EngineConfig, describe_engine
from offing.core.step import shorten_line
from offing.services.experiment_summary import (
    WEIGHTED_MEAN,
    AnswerSummary,
    Estimate,
    ExperimentSummary,
    JudgeSummary,
    MetricCell,
    MetricSummary,
)
from offing.storage.experiments import ConfigurationRow, ExperimentRow, ExperimentTaskRow, ResultRow

MAX_COLUMNS = 100
"""Maximum width of the text in characters."""

MAX_NAME_CHARS = 13
"""Maximum number of characters of a configuration's name in the text. Longer names are cut off."""


METRIC_MEANINGS = {
    "exact_match": "1 if the answer equals an accepted answer, ignoring case, punctuation and articles",
    "token_f1": "words that the answer shares with the closest accepted answer",
    "numeric": "1 if the number in the answer is within the tolerance",
    "citation_recall": "share of the known evidence that the report cites",
    "citation_precision": "share of the citations that are known evidence",
    "retrieval_recall": "share of the known evidence that the searches found",
    "retrieval_ndcg": "how high the searches ranked the known evidence",
    "number_agreement": "share of the numbers in cited sentences that the quotes or calculations have",
    "supported_sentences": "share of the sentences of the report that have a verified citation",
    "answer_judge": "1 if a judge finds that the answer agrees with an accepted answer",
    "report_rubric": "share of the criteria of the question that the report meets, by a judge",
    "rubric_judge": "a judge's score of the answer",
    WEIGHTED_MEAN: "mean of the metrics with a weight",
}
"""What the included metrics measure, for the explanation under the table."""


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table with a title above it and an explanation below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...]
    is_grouped: bool = False
    """Whether the first column names a group of rows. In the text, the name is a line above them."""


def build_blocks(names: Sequence[str], summary: ExperimentSummary, judge: str) -> list[TableBlock]:
    """Return the tables of a summary. `judge` names the engine of the judge; empty without one."""
    blocks = [_build_metric_block(names, summary.metrics)] if summary.metrics else []
    if summary.comparisons:
        blocks.append(_build_judge_block(names[0], summary.comparisons, judge))
    return [*blocks, _build_answer_block(names, summary.answers), _build_cost_block(names, summary.answers)]


def describe_experiment(row: ExperimentRow, configurations: Sequence[ConfigurationRow], task_count: int) -> list[str]:
    """Return what was compared: one line for the experiment, and one per configuration."""
    title = " · ".join(filter(None, (row.name, row.dataset, f"{task_count} questions", f"seed {row.seed}")))
    return [f"experiment {row.id}", title, *map(describe_configuration, configurations)]


def describe_configuration(one: ConfigurationRow) -> str:
    """Return a configuration as pinned, in one line."""
    roles: dict[str, list[str]] = {}
    for role, choice in sorted(one.engines.items()):
        roles.setdefault(describe_engine(EngineConfig.model_validate(choice)), []).append(role)
    common = max(roles, key=lambda engine: len(roles[engine]))
    parts = [f"{', '.join(roles[engine])} by {engine}" for engine in roles if engine != common]
    parts.append(f"{'the other' if parts else 'all'} roles by {common}")
    limits = {"max_turns": "turns", "max_tokens": "tokens", "max_cost_usd": "USD", "max_seconds": "seconds"}
    maximum = [f"{one.budget[name]} {unit}" for name, unit in limits.items() if one.budget.get(name) is not None]
    scope = [name for name, value in sorted(one.scope.items()) if value]
    extra = [f"with {', '.join(scope)}"] if scope else []
    graph = f"{one.graph} ({one.graph_version[:8]})"
    return f"{one.name}: {'; '.join((graph, *parts, *extra, 'at most ' + ', '.join(maximum)))}"


def render_text(heading: Sequence[str], blocks: Sequence[TableBlock]) -> str:
    """Render tables for a terminal."""
    lines = [part for line in heading for part in _wrap(line)]
    for block in blocks:
        lines += ["", block.title, *_render_rows(block), *(part for text in block.legend for part in _wrap(text))]
    return "\n".join(lines) + "\n"


def render_markdown(heading: Sequence[str], blocks: Sequence[TableBlock]) -> str:
    """Render tables as Markdown."""
    lines = [f"- {_escape(line)}" for line in heading]
    for block in blocks:
        align = [":--" if _is_left(block, n) else "--:" for n in range(len(block.header))]
        lines += ["", f"**{_escape(block.title)}**", ""]
        lines += [_markdown_row(block.header), _markdown_row(align, escape=False), *map(_markdown_row, block.rows)]
        lines += ["", *map(_escape, block.legend)]
    return "\n".join(lines) + "\n"


def render_csv(
    names: Sequence[str], metrics: Sequence[str], tasks: Sequence[ExperimentTaskRow], results: Sequence[ResultRow]
) -> str:
    """Render one line per task and configuration. An empty value means that there is none."""
    by_key: Mapping[tuple[UUID, int], ResultRow] = {(row.task_id, row.number): row for row in results}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    costs = ("turns", "tokens", "cost_usd", "seconds")
    writer.writerow(("task_id", "task", "configuration", "run_id", "outcome", "has_abstained", *metrics, *costs))
    for task in tasks:
        for number, name in enumerate(names):
            if (row := by_key.get((task.id, number))) is not None:
                values = ["" if (value := row.scores.get(m)) is None else f"{value:.6g}" for m in metrics]
                usage = (row.turns, row.tokens, f"{row.cost_usd:.6f}", f"{row.seconds:.3f}")
                ending = (row.run_id or "", row.outcome, str(row.has_abstained).lower())
                writer.writerow((task.id, task.name, name, *ending, *values, *usage))
    return out.getvalue()


def _build_metric_block(names: Sequence[str], metrics: Sequence[MetricSummary]) -> TableBlock:
    rows = [
        (metric.name, names[number], *_metric_cells(cell, len(names) > 1))
        for metric in metrics
        for number, cell in enumerate(metric.cells)
    ]
    header = ("metric", "configuration", "questions", "mean", "95 % interval")
    legend = ["Mean from 0 (bad) to 1 (good). 95 % interval: where the mean lies if the questions were drawn again."]
    if len(names) > 1:
        header += ("difference", "95 % interval", "verdict")
        legend.append(
            f"Difference: to {names[0]}, on the same questions. better, worse: the whole interval is above or below 0."
        )
    legend += [f"{one.name}: {METRIC_MEANINGS[one.name]}." for one in metrics if one.name in METRIC_MEANINGS]
    notes = [_describe_left_out(metric, names) for metric in metrics]
    return TableBlock("Quality of the answers", header, tuple(rows), (*legend, *filter(None, notes)), True)


def _describe_left_out(metric: MetricSummary, names: Sequence[str]) -> str:
    parts = [f"{metric.inapplicable} questions lack what it needs"] if metric.inapplicable else []
    parts += [
        f"{cell.unscored} of {name} could not be scored"
        for name, cell in zip(names, metric.cells, strict=True)
        if cell.unscored
    ]
    return f"Left out of {metric.name}: {', '.join(parts)}." if parts else ""


def _metric_cells(cell: MetricCell, is_compared: bool) -> tuple[str, ...]:
    one, gain = cell.estimate, cell.difference
    first = ("0", "", "") if one is None else (str(one.count), f"{one.mean:.3f}", _interval(one, ""))
    if gain is None:
        return (*first, *([""] * 3 if is_compared else []))
    return (*first, f"{gain.mean:+.3f}", _interval(gain, "+"), str(cell.verdict))


def _interval(estimate: Estimate, sign: str) -> str:
    return f"{estimate.low:{sign}.3f} to {estimate.high:{sign}.3f}"


def _build_judge_block(base: str, comparisons: Sequence[JudgeSummary], judge: str) -> TableBlock:
    header = ("configuration", "wins", "ties", "losses", "net", "95 % interval", "same", "first", "verdict")
    rows = [
        (
            one.name, str(one.wins), str(one.ties), str(one.losses),
            "" if one.net_wins is None else f"{one.net_wins.mean:+.3f}",
            "" if one.net_wins is None else _interval(one.net_wins, "+"),
            _percent(one.agreement), _percent(one.first_preferred), str(one.verdict or ""),
        )
        for one in comparisons
    ]  # fmt: skip
    legend = [
        f"{judge} read each pair of reports twice, in both orders. A win or a loss needs the same verdict both times.",
        "net: wins minus losses, per pair. same: pairs with the same verdict in both orders. first: verdicts for the "
        "report shown first; 50 % means that the order does not matter.",
    ]
    failed = [f"{one.failed} pairs of {one.name}" for one in comparisons if one.failed]
    if failed:
        legend.append(f"Left out, because the judge failed: {', '.join(failed)}.")
    return TableBlock(f"Reports compared with those of {base}", header, tuple(rows), tuple(legend))


def _build_answer_block(names: Sequence[str], answers: Sequence[AnswerSummary]) -> TableBlock:
    header = ("configuration", "questions", "answered", "no answer", "right refusals", "wrong answers", "failed")
    rows = [
        (
            name, str(one.questions), str(one.answered), str(one.unanswered), str(one.right_abstentions),
            str(one.wrong_answers), str(one.failed),
        )
        for name, one in zip(names, answers, strict=True)
    ]  # fmt: skip
    legend = (
        "right refusals, wrong answers: of questions without a correct answer, those that were left unanswered and "
        "those that were answered.",
        "failed: ended by a fault of a provider or of the platform. They count in no other column and in no mean.",
    )
    return TableBlock("How the runs ended", header, tuple(rows), legend)


def _build_cost_block(names: Sequence[str], answers: Sequence[AnswerSummary]) -> TableBlock:
    rows = [
        (name, f"{one.tokens:,.0f}", f"{one.cost_usd:.4f}", f"{one.turns:.1f}", f"{one.seconds:.2f}")
        for name, one in zip(names, answers, strict=True)
    ]
    header = ("configuration", "tokens", "USD", "turns", "seconds")
    legend = ("Mean per question. seconds: working time of the run, without waiting in the queue.",)
    return TableBlock("Cost per question", header, tuple(rows), legend)


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{fraction:.0%}".replace("%", " %")


def _render_rows(block: TableBlock) -> list[str]:
    first = int(block.is_grouped)
    rows = [_shorten_row(row[first:], block.is_grouped) for row in block.rows]
    header = block.header[first:]
    widths = [max(len(row[n]) for row in (header, *rows)) for n in range(len(header))]
    lines, group = [_join_cells(block, header, widths)], ""
    for row, cells in zip(block.rows, rows, strict=True):
        if block.is_grouped and row[0] != group:
            lines.append(group := row[0])
        lines.append(_join_cells(block, cells, widths))
    return lines


def _shorten_row(cells: Sequence[str], is_indented: bool) -> tuple[str, ...]:
    name = shorten_line(cells[0], MAX_NAME_CHARS)
    return ("  " + name if is_indented else name, *cells[1:])


def _join_cells(block: TableBlock, cells: Sequence[str], widths: Sequence[int]) -> str:
    first = int(block.is_grouped)
    padded = [
        cell.ljust(width) if _is_left(block, n + first) else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _is_left(block: TableBlock, column: int) -> bool:
    return column <= int(block.is_grouped) or block.header[column] == "verdict"


def _wrap(line: str) -> list[str]:
    lines, current = list[str](), ""
    for word in line.split(" "):
        if current and len(current) + 1 + len(word) > MAX_COLUMNS:
            lines.append(current)
            current = "  " + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def _markdown_row(cells: Sequence[str], escape: bool = True) -> str:
    return "| " + " | ".join(_escape(cell) if escape else cell for cell in cells) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
