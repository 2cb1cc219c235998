"""Commands `offing evaluate` with their options. The work is imported when a command is called."""

from pathlib import Path
from typing import Literal

from cyclopts import App

from offing.cli.options import ComparisonOptions, Json, Paths

app = App(name="evaluate", help="Compare configurations on the same questions; list, show and export experiments.")


@app.default
def evaluate(options: ComparisonOptions) -> int:
    """Let one or more configurations answer the questions of a dataset, and compare their answers.

    The result is stored as an experiment. After an interruption, the same command continues.
    """
    from offing.cli.evaluation import evaluate

    return evaluate(options)


@app.command
def resume(experiment: str, *, path: Paths = (), json: Json = False) -> int:
    """Continue an interrupted experiment. EXPERIMENT is an id or the last characters of an id.

    Parameters
    ----------
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    json
        Print only JSON on standard output.
    """
    from offing.cli.evaluation import resume

    return resume(experiment, path, json)


@app.command(name="list")
def list_experiments(*, limit: int = 20, json: Json = False) -> int:
    """List experiments, newest first."""
    from offing.cli.evaluation import list_experiments as listed

    return listed(limit, json)


@app.command
def show(experiment: str, *, json: Json = False) -> int:
    """Show what an experiment found. EXPERIMENT is an id or the last characters of an id."""
    from offing.cli.evaluation import export

    return export(experiment, "json" if json else "text", None)


@app.command
def export(experiment: str, *, format: Literal["md", "csv", "json"] = "md", output: Path | None = None) -> int:
    """Write an experiment to a file. EXPERIMENT is an id or the last characters of an id.

    Parameters
    ----------
    format
        `md`: the tables. `csv`: one line per question and configuration. `json`: everything.
    output
        The file to write. Default: standard output.
    """
    from offing.cli.evaluation import export

    return export(experiment, format, output)
