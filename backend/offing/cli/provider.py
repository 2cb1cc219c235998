"""`offing provider`: the model providers of this installation, with their keys."""

import asyncio
import getpass
import sys
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from offing import environment
from offing.cli.options import Flag, Json
from offing.cli.show import run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput, Unavailable
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT

app = App(name="provider", help="Model providers and their keys: add, limit, list, models, test, remove, discover.")

MAX_PIPED_CHARS = 4_096


@app.command
def add(
    name: str,
    *,
    provider: str = "",
    api_base: str = "",
    key_stdin: Flag = False,
    no_key: Flag = False,
    max_concurrent_calls: int | None = None,
) -> int:
    """Store a provider, or replace it. Its key is asked for, and never shown again.

    The key is encrypted with a key file outside the database, and is sent only to the provider's own address or to
    --api-base.

    Parameters
    ----------
    name
        What precedes the slash in the name of a model, such as openai.
    provider
        litellm's name of the provider, such as hosted_vllm. Default: the name.
    api_base
        Address of another server, which must be accepted: `offing engine accept ADDRESS`. Default: the provider's own.
    key_stdin
        Read the key from standard input instead of the terminal.
    no_key
        Store the provider without a key.
    max_concurrent_calls
        Maximum number of calls at the same time, such as 1 for Ollama. Others wait. Default: no limit.
    """
    from offing.services import providers
    from offing.services.providers import ProviderRequest

    key = "" if no_key else read_key(name, from_stdin=key_stdin)
    request = ProviderRequest(name, provider, api_base, key, max_concurrent_calls)
    row = run_with_database(lambda database: providers.put_provider(database, LOCAL_TENANT, request, _environment()))
    print(f"Runs may now use {row.name}/MODEL, such as --engine all=litellm:{row.name}/MODEL.")
    print(f"Try it with: offing provider test {row.name} MODEL")
    return 0


@app.command
def limit(name: str, max_concurrent_calls: int) -> int:
    """Limit how many calls use a provider at the same time, in all workers. Its key stays.

    Parameters
    ----------
    name
        A stored provider.
    max_concurrent_calls
        Maximum number of calls at the same time. Others wait. 0 removes the limit.
    """
    from offing.services import providers

    calls = None if max_concurrent_calls == 0 else max_concurrent_calls
    run_with_database(lambda database: providers.set_call_limit(database, LOCAL_TENANT, name, calls))
    print(f"{name}: {'no limit of' if calls is None else f'at most {calls}'} concurrent calls, within 10 seconds.")
    return 0


@app.command(name="list")
def list_providers(*, json: Json = False) -> int:
    """List the stored providers, without their keys."""
    from offing.services import providers

    rows = run_with_database(lambda database: providers.list_providers(database, LOCAL_TENANT))
    if json:
        fields = ("name", "litellm_provider", "api_base", "max_concurrent_calls", "key_set_at", "last_test")
        return print_json([{name: getattr(row, name) for name in fields} for row in rows])
    table = Table("name", "provider", "address", "calls", "key", "last test", box=None)
    for row in rows:
        tested = escape(str((row.last_test or {}).get("model", "")))
        key = f"set {row.key_set_at:%Y-%m-%d}" if row.key_set_at else "none"
        calls = f"at most {row.max_concurrent_calls}" if row.max_concurrent_calls else "no limit"
        table.add_row(row.name, row.litellm_provider, row.api_base or "its own", calls, key, tested)
    Console(soft_wrap=True).print(table)
    return 0


@app.command(name="models")
def list_models(name: str, search: str = "", *, json: Json = False) -> int:
    """List the models of a stored provider, with prices and context windows where litellm knows them.

    Parameters
    ----------
    name
        A stored provider.
    search
        Words that the names contain.
    json
        Print only JSON on standard output.
    """
    from offing.models.provider_models import search_models
    from offing.services.provider_models import list_provider_models

    listed = run_with_database(lambda database: list_provider_models(database, LOCAL_TENANT, name, _environment()))
    if listed.problem:
        raise Unavailable(f"The models of {name} cannot be listed. {strip_control(listed.problem)}")
    models = search_models(listed.models, search)
    if json:
        return print_json([asdict(model) for model in models])
    table = Table("model", "context", "USD per million prompt tokens", "answer tokens", box=None)
    for model in models:
        prices = (model.input_usd_per_million, model.output_usd_per_million)
        price_texts = ["unknown" if price is None else f"{price:g}" for price in prices]
        context = f"{model.context_tokens:,}" if model.context_tokens else "unknown"
        table.add_row(escape(strip_control(f"{name}/{model.name}")), context, *price_texts)
    Console(soft_wrap=True).print(table)
    return 0


@app.command(name="test")
def run_test(name: str, model: str, *, max_cost_usd: float = 0.05, json: Json = False) -> int:
    """Try what a model can do, with one short call each. The result is stored with the provider.

    Exits with 1 if the model does not answer.

    Parameters
    ----------
    name
        A stored provider.
    model
        Name of the model at the provider, such as gpt-5-mini.
    max_cost_usd
        Maximum cost of the test in US dollars.
    json
        Print only JSON on standard output.
    """
    from offing.services import provider_trial

    cap = Decimal(str(max_cost_usd))
    result = run_with_database(
        lambda database: provider_trial.run_provider_test(database, LOCAL_TENANT, name, model, cap, _environment())
    )
    if json:
        print_json(dict(result))
    else:
        print_result(result)
    return 0 if result["capabilities"][0]["outcome"] == "works" else 1


@app.command
def check(
    model: str,
    *,
    api_base: str = "",
    key_stdin: Flag = False,
    no_key: Flag = False,
    max_cost_usd: float = 0.10,
    output: Path | None = None,
) -> int:
    """Try each capability of a model and each flow on a small question, and write a Markdown table for an issue.

    It takes less than five minutes, in an installation of its own that is deleted afterwards. The key comes from the
    provider's variable, such as OPENAI_API_KEY, or is asked for.

    Parameters
    ----------
    model
        PROVIDER/MODEL, such as openai/gpt-5-mini.
    api_base
        Address of another server. Default: the provider's own.
    key_stdin
        Read the key from standard input.
    no_key
        Use no key.
    max_cost_usd
        Maximum cost of the whole check in US dollars, at most 1.
    output
        The file to write. Default: standard output.
    """
    from offing.cli.provider_check import CheckRequest, check_provider

    return check_provider(CheckRequest(model, api_base, key_stdin, no_key, max_cost_usd, output))


@app.command
def remove(name: str) -> int:
    """Delete a provider with its key."""
    from offing.services import providers

    run_with_database(lambda database: providers.delete_provider(database, LOCAL_TENANT, name))
    print(f"{name} is deleted. Workers stop using its key within 10 seconds.")
    return 0


@app.command
def discover() -> int:
    """Find model servers on this machine: Ollama, vLLM, llama.cpp and LM Studio."""
    from offing.models.engine_discovery import SERVER_PROGRAMS, probe_model_servers

    servers = asyncio.run(probe_model_servers(_environment()))
    for server in servers:
        program = SERVER_PROGRAMS.get(server.name.removeprefix("litellm:"), server.name)
        print(f"{program}: {strip_control(server.note)}")
        for model in server.models:
            print(f"  --engine all=litellm:{strip_control(model)}")
    if not servers:
        print(f"No model server answers on this machine. Tried: {', '.join(SERVER_PROGRAMS.values())}.")
    return 0


@app.command
def rotate_key(*, keep_file: Flag = False) -> int:
    """Encrypt all stored keys with a new key, and remove the old one from the key file.

    Parameters
    ----------
    keep_file
        Do not change the key file: encrypt with its last key, for a file that another program writes.
    """
    from offing.local.servers import open_servers
    from offing.services import providers

    settings = load_settings()
    with open_servers(settings) as servers:
        count = providers.rotate_key(servers.owner_url, _environment(), keep_file=keep_file)
    print(f"{count} stored keys are encrypted with a new key.")
    return 0


@app.command
def new_key_file(file: Path) -> int:
    """Create a key file for an installation on several machines, which set OFFING_PROVIDER_KEY_FILE to it."""
    from offing.models.key_file import create_key_file

    if not create_key_file(file):
        raise InvalidInput("FILE", f"{file} exists", "Use another name: the old file decrypts the stored keys.")
    print(f"{file} is created. Keep a copy of it apart from the database's backups.")
    return 0


def read_key(name: str, *, from_stdin: bool) -> str:
    """Read a key from standard input or, without an echo, from the terminal. Raises InvalidInput if there is none."""
    if not from_stdin and not sys.stdin.isatty():
        raise InvalidInput("--key-stdin", "there is no terminal to ask for the key", "Use --key-stdin and pipe it in.")
    text = sys.stdin.read(MAX_PIPED_CHARS) if from_stdin else getpass.getpass(f"Key of {name}: ")
    if not text.strip():
        raise InvalidInput("key", "is empty", "Enter the key, or use --no-key for a server without one.")
    return text.strip()


def print_result(result: Mapping[str, Any]) -> None:
    """Print the result of a test for a reader at a terminal."""
    table = Table("capability", "", "", box=None)
    for one in result["capabilities"]:
        table.add_row(one["name"], one["outcome"], escape(strip_control(one["detail"])))
    console = Console(soft_wrap=True)
    console.print(table)
    cost = f"{result['cost_usd']:.4f} USD" if result["priced"] else "an unknown amount (no listed price)"
    console.print(f"{escape(strip_control(result['model']))}: {result['tokens']} tokens, {result['seconds']} s, {cost}")


def _environment() -> Mapping[str, str]:
    """Return the environment with OFFING_HOME from the settings, so that all commands use the same files."""
    return {**environment.VARIABLES, "OFFING_HOME": str(load_settings().home)}
