"""The verbs of `offing` and what they take. A command's work is in another module, imported when it is called."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from dotenv import load_dotenv

from offing.cli import collecting

app = App(name="offing", help="Self-hosted long-horizon research agents that get better with use.")
key = App(name="key", help="API keys of this installation.")
app.command(key)
app.command(collecting.rollout)
app.command(collecting.batch)
app.command(collecting.policy)
app.command("offing.cli.new:app", name="new", help="Begin something of your own.")
app.command("offing.cli.graph:app", name="graph", help="Graphs: list, draw, check, record.")
app.command("offing.cli.world:app", name="world", help="Made-up worlds to train, evaluate and show agents in.")
app.command("offing.cli.trajectories:app", name="trajectories", help="What runs left for training.")
app.command("offing.cli.loop:loop", name="loop", help="The closed loop: collect, train, evaluate, again.")
app.command("offing.cli.learning:learn", name="learn", help="Learn from judged runs without weights: a prompt library.")
app.command("offing.cli.training:train", name="train", help="Train a policy on stored rollouts.")
app.command("offing.cli.training:trainer", name="trainer", help="Run queued training jobs.")
app.command("offing.cli.training:app", name="training", help="Training jobs: list, look at, pause, go on, cancel.")
app.command("offing.cli.tools:app", name="tools", help="What runs may do with their tools.")
app.command("offing.cli.store:app", name="store", help="What graphs keep beyond a thread.")
app.command("offing.cli.mcp:app", name="mcp", help="Other people's tools: MCP servers that runs may use.")
engine = App(name="engine", help="The policy engine: our own weights, served token by token.")
app.command(engine)

Json = Annotated[bool, Parameter(name="--json", negative="")]

Paths = Annotated[tuple[Path, ...], Parameter(negative="")]

DEPTHS = {"quick": 4, "standard": 12, "deep": 40}
"""Turns of the graph's loop."""

EXIT_FAILED, EXIT_USAGE, EXIT_UNAVAILABLE = 1, 2, 3


@app.command
def up(*, detach: Annotated[bool, Parameter(negative="")] = False, path: Paths = ()) -> int:
    """Start everything: servers, migrations, API with page, one worker. Prints a one-time login link.

    Parameters
    ----------
    detach
        Go on in the background; `offing down` stops it.
    path
        A folder or a .py file with a graph that is not installed, or several.
    """
    from offing.cli import stack

    return stack.up(detach=detach, paths=path)


@app.command
def dev(*, path: Paths = ()) -> int:
    """Start everything over a graph that you work on: what changes in its folder is used by the next run.

    Parameters
    ----------
    path
        The graph's folder, or several. None: this folder.
    """
    from offing.cli import stack

    return stack.dev(path)


@app.command
def down() -> int:
    """Stop what `offing up` started for this home."""
    from offing.cli import stack

    return stack.down()


@app.command
def status() -> int:
    """Say what runs for this home."""
    from offing.cli import stack

    return stack.status()


@app.command
def login(*, page: str | None = None) -> int:
    """Print a one-time link that signs a browser in.

    Parameters
    ----------
    page
        Where the page is, such as `https://offing.example`. None: the page that `offing up` serves for this home.
    """
    from offing.cli import stack

    return stack.login(page)


@app.command
def ask(
    question: str,
    *,
    docs: tuple[Path, ...] = (),
    graph: str = "agentflow",
    engine: tuple[str, ...] = (),
    depth: Literal["quick", "standard", "deep"] = "standard",
    turns: int | None = None,
    usd: float | None = None,
    seconds: float | None = None,
    web: bool = False,
    code: bool = False,
    mcp: tuple[str, ...] = (),
    path: Paths = (),
    json: Json = False,
) -> int:
    """Ask a question, wait, and print a cited report.

    Parameters
    ----------
    question
        What you want to know.
    docs
        A folder of documents, or several; what is already known is not indexed again. None: the whole library.
    graph
        The graph that works on it.
    engine
        `role=engine`, such as `planner=litellm:openai/gpt-5-mini`; or `all=…` for every role.
    depth
        How many turns at most: quick 4, standard 12, deep 40.
    turns
        The same as a number.
    usd
        Money that the run may spend.
    seconds
        Seconds of work, after which it writes what it has.
    web
        It may search the web and read public pages, too.
    code
        It may run Python, in a sandbox without network.
    mcp
        An MCP server of the operator's whose tools it may use, or several; see `offing mcp list`.
    path
        A folder or a .py file with a graph that is not installed, or several.
    json
        Print only JSON on standard output.
    """
    from offing.cli.ask import Wanted, run

    most = DEPTHS[depth] if turns is None else turns
    return run(Wanted(question, docs, graph, engine, most, usd, seconds, web, mcp, path, code), json)


@app.command
def fork(
    run: str,
    *,
    at: int | None = None,
    engine: tuple[str, ...] = (),
    turns: int | None = None,
    usd: float | None = None,
    seconds: float | None = None,
    say: str = "",
    path: Paths = (),
    json: Json = False,
) -> int:
    """Go on from a recorded step of a run, in a run of its own; no call up to there is made again.

    Parameters
    ----------
    run
        Its id, or the end of it.
    at
        The last step that is kept, as `offing show` numbers them. None: the last one before the run's end.
    engine
        `role=engine` from then on, such as `planner=litellm:openai/gpt-5-mini`; or `all=…` for every role.
    turns
        How many turns at most, with those that are kept. None: as many as the run had.
    usd
        Money that it may spend, with what the kept steps have cost.
    seconds
        Seconds of work, with those of the kept steps.
    say
        What its planner is told.
    path
        A folder or a .py file with a graph that is not installed, or several.
    json
        Print only JSON on standard output.
    """
    from offing.cli import forking

    return forking.run(forking.WantedFork(run, at, engine, turns, usd, seconds, say, path), json)


@app.command
def answer(run: str, *, say: str | None = None) -> int:
    """Answer what a run asks; it goes on by itself. The page of the run does the same.

    Parameters
    ----------
    run
        Its id, or the end of it.
    say
        The answer to its first open question, as it would be typed. None: you are asked everything that is open.
    """
    from offing.cli import asking

    return asking.answer(run, say)


@app.command
def runs(*, limit: int = 20, json: Json = False) -> int:
    """List recent runs, newest first."""
    from offing.cli.show import list_runs

    return list_runs(limit, json)


@app.command
def show(run: str, *, json: Json = False) -> int:
    """Show a run's steps and report. RUN may be shortened to its last characters."""
    from offing.cli.show import show_run

    return show_run(run, json)


@app.command
def export(run: str, *, format: Literal["md", "html", "json"] = "md", output: Path | None = None) -> int:
    """Write a run's report with its evidence.

    Parameters
    ----------
    format
        md, html or json.
    output
        The file to write. None: standard output.
    """
    from offing.cli.show import export_run

    return export_run(run, format, output)


@app.command
def doctor(*, json: Json = False) -> int:
    """Check what Offing needs on this machine, and say how to mend what is missing."""
    from offing.cli.stack import doctor as examine

    return examine(json)


@app.command
def backup(file: Path | None = None) -> int:
    """Write the whole installation to one file, also while it runs.

    Parameters
    ----------
    file
        The file to write. Without it, `offing-DATE-TIME.backup` in the current folder.
    """
    from offing.cli.backup import backup as write

    return write(file)


@app.command
def restore(file: Path) -> int:
    """Bring a backup into an installation that holds nothing yet.

    Parameters
    ----------
    file
        A file that `offing backup` wrote.
    """
    from offing.cli.backup import restore as bring_back

    return bring_back(file)


@app.command
def migrate(*, check: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Bring the database to this version.

    Parameters
    ----------
    check
        Change nothing; exit 1 if it is not at this version.
    """
    from offing.cli import stack

    return stack.migrate(check=check)


@key.command
def create(name: str) -> int:
    """Make an API key and print it, once."""
    from offing.cli.keys import create_key

    return create_key(name)


@key.command(name="list")
def list_(*, json: Json = False) -> int:
    """List API keys, without their secrets."""
    from offing.cli.keys import list_keys

    return list_keys(json)


@key.command
def revoke(id: str) -> int:
    """End an API key's validity."""
    from offing.cli.keys import revoke_key

    return revoke_key(id)


@engine.command
def serve(
    *,
    policies: Path | None = None,
    policy: tuple[str, ...] = (),
    socket: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8410,
    device: str | None = None,
    threads: int | None = None,
    rows: int = 128,
    context: int = 32_768,
) -> int:
    """Serve policy versions until stopped. Needs the extra `train`.

    Parameters
    ----------
    policies
        A folder with one folder a version, named NAME@VERSION. None: OFFING_POLICIES.
    policy
        `NAME@VERSION=FOLDER`, several times for several versions.
    socket
        A unix socket for this user alone. None: a port, with the bearer token in OFFING_ENGINE_KEY.
    device
        Such as cpu or cuda:1. None: a GPU where there is one.
    threads
        Of the CPU. None: one for each core but one.
    rows
        Requests that are answered at once.
    context
        Tokens of prompt and answer together, where the model allows as many.
    """
    from offing.cli.engine import Wanted
    from offing.cli.engine import serve as run

    return run(Wanted(policies, policy, socket, host, port, device, threads, rows, context))


@engine.command
def servers() -> int:
    """Show model servers that are found on this machine, and those that runs may ask."""
    from offing.cli.model_servers import show_servers

    return show_servers()


@engine.command
def accept(address: str) -> int:
    """Let runs ask a model server of yours, such as an Ollama on this machine. No key is sent there.

    Parameters
    ----------
    address
        Such as http://127.0.0.1:11434. On this machine its port counts alone.
    """
    from offing.cli.model_servers import accept_server

    return accept_server(address)


@engine.command
def withdraw(address: str) -> int:
    """Take back what `offing engine accept` allowed.

    Parameters
    ----------
    address
        As `offing engine servers` shows it.
    """
    from offing.cli.model_servers import withdraw_server

    return withdraw_server(address)


@engine.command
def new_policy(
    folder: Path,
    *,
    size: Literal["tiny", "small"] = "tiny",
    bytes: Annotated[bool, Parameter(negative="")] = False,
    words: Path | None = None,
    seed: int = 0,
) -> int:
    """Make a small policy with random weights. Needs the extra `train`.

    Parameters
    ----------
    folder
        Where to; it must not exist yet.
    size
        tiny: two layers of width 64. small: four of width 128.
    bytes
        One token a byte, which can write any text. Otherwise one token a word.
    words
        A file with the words of its vocabulary. None: those of the world's compact notation.
    seed
        Of the weights.
    """
    from offing.cli.engine import new_policy as make

    return make(folder, size, bytes, words, seed)


def main() -> None:
    """Entry point. An error that is raised on purpose is one line on standard error and an exit code."""
    from offing.core.errors import InvalidInput, OffingError, Unavailable

    if "OFFING_READY_FILE" not in os.environ:  # `offing up` started this: it chose what belongs in our environment
        load_dotenv(".env")  # provider keys, too: engines find them in the environment alone
    try:
        code = app()
    except InvalidInput as error:
        code = _complain(error, EXIT_USAGE)
    except Unavailable as error:
        code = _complain(error, EXIT_UNAVAILABLE)
    except OffingError as error:
        code = _complain(error, EXIT_FAILED)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = EXIT_FAILED
    sys.exit(code if isinstance(code, int) else 0)


def _complain(error: Exception, code: int) -> int:
    print(f"offing: {error}", file=sys.stderr)
    return code
