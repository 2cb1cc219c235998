"""`offing preset`: which model answers which role, and the limits of a run, under one name."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from offing.cli.options import Flag, Json
from offing.cli.show import run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, describe_engine
from offing.models.preset_table import Preset
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

app = App(name="preset", help="Presets of engines for roles: list, set, default, remove.")


@app.command(name="list")
def list_presets(*, json: Json = False) -> int:
    """List the presets: those of this installation, and those that the configured providers allow."""
    from offing.services import presets, tenants

    async def read(database: Database) -> tuple[Sequence[Preset], str | None]:
        tenant = await tenants.get_tenant(database, LOCAL_TENANT)
        return await presets.list_presets(database, LOCAL_TENANT), tenant.default_preset

    listed, default = run_with_database(read)
    if json:
        return print_json([_describe(preset, is_default=preset.name == default) for preset in listed])
    for preset in listed:
        built_in, chosen = "  (built-in)" * preset.is_built_in, "  (default)" * (preset.name == default)
        print(f"{preset.name}{built_in}{chosen}")
        for role, config in sorted(preset.engines.items()):
            print(f"  {role}={strip_control(describe_engine(config))}")
        for limit, value in preset.budget.items():
            print(f"  {limit}={value}" if isinstance(value, str) else f"  {limit}={value:g}")
    return 0


@app.command(name="set")
def set_preset(
    name: str,
    *,
    engines: Annotated[tuple[str, ...], Parameter(name="--engine", negative="")],
    max_turns: int | None = None,
    max_tokens: int | None = None,
    max_cost_usd: float | None = None,
    max_seconds: float | None = None,
    depth: Literal["quick", "standard", "deep"] | None = None,
) -> int:
    """Create or replace a preset. Use it with `offing ask --preset NAME`.

    Parameters
    ----------
    name
        A name, such as fast, thorough or local.
    engines
        `role=engine`, such as `planner=litellm:openai/gpt-5-mini`, or `all=…` for every other role. Repeat the option.
    max_turns
        Maximum number of turns.
    max_tokens
        Maximum number of tokens.
    max_cost_usd
        Maximum cost of a run in US dollars.
    max_seconds
        Maximum working time in seconds.
    depth
        How runs use their turns.
    """
    from offing.services import presets

    limits = {
        "max_turns": max_turns,
        "max_tokens": max_tokens,
        "max_cost_usd": max_cost_usd,
        "max_seconds": max_seconds,
        "depth": depth,
    }
    budget = {limit: value for limit, value in limits.items() if value is not None}
    preset = Preset(name, parse_engines(engines), budget)
    run_with_database(lambda database: presets.put_preset(database, LOCAL_TENANT, preset))
    print(f'Use it with: offing ask "QUESTION" --preset {name}')
    return 0


@app.command
def default(name: str = "", *, none: Flag = False) -> int:
    """Show or choose the preset of new questions that name neither a preset nor an engine.

    Parameters
    ----------
    name
        A preset, as in `offing preset list`. Without it, the current one is shown.
    none
        Use no preset: OFFING_DEFAULT_ENGINE answers.
    """
    from offing.services import tenants

    if none and name:
        raise InvalidInput("--none", "was used with the name of a preset", "Use one of them.")
    if name or none:
        chosen = name or None
        run_with_database(lambda database: tenants.update_tenant(database, LOCAL_TENANT, default_preset=chosen))
        return 0
    tenant = run_with_database(lambda database: tenants.get_tenant(database, LOCAL_TENANT))
    print(tenant.default_preset or "There is none. Choose one with: offing preset default NAME")
    return 0


@app.command
def remove(name: str) -> int:
    """Delete a preset of this installation. A built-in one of the same name takes effect again."""
    from offing.services import presets

    run_with_database(lambda database: presets.delete_preset(database, LOCAL_TENANT, name))
    return 0


def parse_engines(texts: tuple[str, ...]) -> dict[str, EngineConfig]:
    """Parse `role=engine` texts of any graph. Raises InvalidInput."""
    from offing.models.engine_discovery import parse_engine_config

    engines: dict[str, EngineConfig] = {}
    for text in texts:
        role, equals, engine = text.partition("=")
        if not equals or not role or not engine:
            problem = f"{text!r} does not have the form role=engine"
            raise InvalidInput("--engine", problem, "For example, use all=litellm:openai/gpt-5-mini.")
        engines[role] = parse_engine_config(engine, "--engine")
    return engines


def _describe(preset: Preset, *, is_default: bool) -> dict[str, Any]:
    engines = {role: describe_engine(config) for role, config in preset.engines.items()}
    return {
        "name": preset.name,
        "engines": engines,
        "budget": dict(preset.budget),
        "built_in": preset.is_built_in,
        "default": is_default,
    }
