"""Top-level commands of `offing` with their options. The work is imported when a command is called."""

import sys
from pathlib import Path
from typing import Literal

from cyclopts import App, CommandCollisionError

from offing.cli import evaluation_commands, rollout_commands
from offing.cli.command import COMMANDS
from offing.cli.options import (
    AskOptions,
    DevOptions,
    Flag,
    ForkOptions,
    Json,
    OrganizeOptions,
    Paths,
    RunListOptions,
    ServeEngineOptions,
)
from offing.core.errors import InvalidInput

app = App(name="offing", help="Self-hosted long-horizon research agents that get better with use.")
key = App(name="key", help="API keys of this installation.")
app.command(key)
app.command(rollout_commands.rollouts)
app.command(rollout_commands.policy)
app.command(evaluation_commands.app)
app.command("offing.cli.new:app", name="new", help="Create a package from a template.")
app.command("offing.cli.datasets:app", name="datasets", help="Datasets: import published ones, show their tasks.")
app.command("offing.cli.graph:app", name="graph", help="Graphs: list, draw, check, record.")
app.command(
    "offing.cli.trajectories:app", name="trajectories", help="Trajectories: export, show, replay, import, check."
)
app.command("offing.cli.loop:run_loop", name="loop", help="Run the training loop: collect, train, evaluate, repeat.")
app.command("offing.cli.tasks:app", name="tasks", help="Tasks for training: make them from rated runs.")
app.command(
    "offing.cli.signals:app", name="signals", help="What people said about a run, and whether to learn from it."
)
app.command(
    "offing.cli.distillation:distill",
    name="distill",
    help="Make a candidate version of a prompt library from rated runs.",
)
app.command("offing.cli.training_jobs:train", name="train", help="Train a policy on stored rollouts.")
app.command("offing.cli.training_jobs:trainer", name="trainer", help="Run queued training jobs.")
app.command("offing.cli.training_jobs:app", name="jobs", help="Training jobs: list, show, pause, resume, cancel.")
app.command(
    "offing.cli.tool_policy:app",
    name="tool-policy",
    help="Tool policies: check one, decide sample calls, keep them under a name.",
)
app.command("offing.cli.store:app", name="store", help="Items that graphs store outside their threads.")
app.command("offing.cli.mcp:app", name="mcp", help="MCP servers, whose third-party tools runs may use.")
app.command(
    "offing.cli.provider:app",
    name="provider",
    help="Model providers and their keys: add, list, test, remove, discover.",
)
app.command(
    "offing.cli.collections:app",
    name="collections",
    help="Collections of the document library: list, show their documents, rename, delete, move documents.",
)
app.command("offing.cli.preset:app", name="preset", help="Presets of engines for roles: list, set, remove.")
app.command("offing.cli.webhook:app", name="webhook", help="Addresses to which events of runs are sent.")
app.command("offing.cli.share:app", name="share", help="Links under which a report can be read without an account.")
engine = App(name="engine", help="The policy engine, which serves policy versions, and other model servers.")
app.command(engine)


@app.command
def up(*, detach: Flag = False, path: Paths = ()) -> int:
    """Start the stack: database, Redis, migrations, API with web UI, workers.

    Prints a one-time login link.

    Parameters
    ----------
    detach
        Run in the background. `offing down` stops the stack.
    path
        A folder or a .py file with a graph that is not installed. Repeat the option for several.
    """
    from offing.cli import stack

    return stack.up(detach=detach, paths=path)


@app.command
def dev(options: DevOptions = DevOptions()) -> int:  # noqa: B008 - it is frozen
    """Start the stack with graphs under development. New runs use the latest version of their files.

    In a folder with a `langgraph.json`, its graphs are served.
    """
    from offing.cli import stack

    return stack.dev(options)


@app.command
def down() -> int:
    """Stop the stack that `offing up` started for this data directory."""
    from offing.cli import stack

    return stack.down()


@app.command
def status() -> int:
    """Show the processes that run for this data directory."""
    from offing.cli import stack

    return stack.status()


@app.command
def login(*, url: str | None = None, operator: Flag = False) -> int:
    """Print a one-time link that signs a browser in.

    Parameters
    ----------
    url
        URL of the web UI, such as `https://offing.example`. Default: the web UI of `offing up`.
    operator
        For 12 hours, the session may also change the installation, such as adding MCP servers.
    """
    from offing.cli import stack

    return stack.login(url, is_operator=operator)


@app.command
def ask(options: AskOptions) -> int:
    """Ask a question, wait for the run and print a cited report."""
    from offing.cli.ask import run_ask

    return run_ask(options)


@app.command
def fork(options: ForkOptions) -> int:
    """Continue from a recorded step of a run in a new run. Calls up to that step are not repeated."""
    from offing.cli.fork import run_fork

    return run_fork(options)


@app.command
def answer(run: str, *, text: str | None = None) -> int:
    """Respond to the input requests of a run. The run then continues. You can also respond in the web UI.

    Parameters
    ----------
    run
        A run id or the last characters of an id.
    text
        Response to the first pending request, as you would type it. Default: prompt for every pending
        request.
    """
    from offing.cli import input_responses

    return input_responses.answer_run(run, text)


@app.command
def runs(options: RunListOptions = RunListOptions()) -> int:  # noqa: B008 - it is frozen
    """List runs, newest first. Archived runs are left out."""
    from offing.cli.run_list import list_runs

    return list_runs(options)


@app.command
def organize(run: str, options: OrganizeOptions = OrganizeOptions()) -> int:  # noqa: B008 - it is frozen
    """Give a run a title and tags, pin it, or archive it. Without options, show what it has.

    RUN is an id or the last characters of an id.
    """
    from offing.cli.run_list import organize_run

    return organize_run(run, options)


@app.command
def delete(run: str, *, later_runs: Flag = False, yes: Flag = False) -> int:
    """Delete an ended run permanently with its steps, report, ratings, files and the runs that it started.

    Parameters
    ----------
    run
        A run id or the last characters of an id.
    later_runs
        Also delete the later runs of its thread, which build on it.
    yes
        Delete without asking.
    """
    from offing.cli.run_list import delete_run

    return delete_run(run, with_later_runs=later_runs, is_confirmed=yes)


@app.command
def show(run: str, *, version: int | None = None, json: Json = False) -> int:
    """Show the steps and the report of a run. RUN is an id or the last characters of an id.

    Parameters
    ----------
    version
        The version of the report. Default: the latest, with what people have edited.
    """
    from offing.cli.show import show_run

    return show_run(run, json, version)


@app.command
def export(
    run: str,
    *,
    format: Literal["md", "html", "json", "docx", "pdf", "bib", "ris"] = "md",
    output: Path | None = None,
    version: int | None = None,
) -> int:
    """Write the report of a run with its evidence, or its cited sources.

    Parameters
    ----------
    format
        `md`, `html`, `json`, `docx` or `pdf` for the report. `bib` (BibTeX) or `ris` for its cited sources.
    output
        The file to write. Default: standard output.
    version
        The version of the report. Default: the latest, with what people have edited.
    """
    from offing.cli.show import export_run

    return export_run(run, format, output, version)


@app.command
def doctor(*, json: Json = False) -> int:
    """Check the requirements of Offing on this machine, and show how to fix what is missing."""
    from offing.cli.stack import run_doctor as examine

    return examine(json)


@app.command
def backup(file: Path | None = None) -> int:
    """Write a backup of the installation to one file. The installation may keep running.

    Parameters
    ----------
    file
        The file to write. Default: `offing-DATE-TIME.backup` in the current folder.
    """
    from offing.cli.backup import backup as write

    return write(file)


@app.command
def restore(file: Path) -> int:
    """Restore a backup into an empty installation.

    Parameters
    ----------
    file
        A file that `offing backup` has written.
    """
    from offing.cli.backup import restore as bring_back

    return bring_back(file)


@app.command
def migrate(*, check: Flag = False) -> int:
    """Migrate the database to this version.

    Parameters
    ----------
    check
        Change nothing, and exit with 1 if the database is not at this version.
    """
    from offing.cli import stack

    return stack.migrate(check=check)


@key.command
def create(name: str) -> int:
    """Create an API key and print it. It cannot be shown again."""
    from offing.cli.keys import create_key

    return create_key(name)


@key.command(name="list")
def list_keys(*, json: Json = False) -> int:
    """List API keys without their secrets."""
    from offing.cli.keys import list_keys

    return list_keys(json)


@key.command
def revoke(key_id: str) -> int:
    """Revoke an API key."""
    from offing.cli.keys import revoke_key

    return revoke_key(key_id)


@engine.command
def serve(options: ServeEngineOptions = ServeEngineOptions()) -> int:  # noqa: B008 - it is frozen
    """Serve policy versions until stopped. Needs the extra `train`."""
    from offing.cli.engine import serve_engine

    return serve_engine(options)


@engine.command
def servers() -> int:
    """List the model servers that were found on this machine or accepted."""
    from offing.cli.model_servers import show_servers

    return show_servers()


@engine.command
def accept(address: str) -> int:
    """Allow runs to use a model server, such as an Ollama on this machine. No API key is sent to it.

    Parameters
    ----------
    address
        URL of the server, such as http://127.0.0.1:11434. On this machine, only its port matters.
    """
    from offing.cli.model_servers import accept_server

    return accept_server(address)


@engine.command
def withdraw(address: str) -> int:
    """Undo `offing engine accept`.

    Parameters
    ----------
    address
        URL of the server, as shown by `offing engine servers`.
    """
    from offing.cli.model_servers import withdraw_server

    return withdraw_server(address)


@engine.command
def new_policy(
    folder: Path,
    *,
    size: Literal["tiny", "small"] = "tiny",
    byte_level: Flag = False,
    vocabulary: Path | None = None,
    seed: int = 0,
) -> int:
    """Create a small policy with random weights. Needs the extra `train`.

    Parameters
    ----------
    folder
        The folder to create. It must not exist yet.
    size
        `tiny`: two layers of width 64. `small`: four layers of width 128.
    byte_level
        Use one token per byte, which can represent any text. Default: one token per word.
    vocabulary
        A file with the words of the vocabulary. Default: the words of the world's compact notation.
    seed
        Seed of the random weights.
    """
    from offing.cli.engine import create_random_policy as make

    return make(folder, size, byte_level, vocabulary, seed)


def add_registered_commands(to: App) -> None:
    """Add the commands that packages register. One that cannot be used is reported, and the others work."""
    for name in COMMANDS:
        try:
            command = COMMANDS[name]
            to.command(command.target, name=name, help=command.help)
        except (InvalidInput, CommandCollisionError) as error:
            print(f"offing: the command {name} cannot be used: {error}", file=sys.stderr)


add_registered_commands(app)
