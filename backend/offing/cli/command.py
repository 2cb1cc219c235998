"""Registration of commands of `offing`."""

from dataclasses import dataclass

from offing.registry import Group, Registry


@dataclass(frozen=True, slots=True)
class Command:
    """A registered command. Its module must be fast to import."""

    target: str
    """`module:value` of a cyclopts app or a function, imported when the command is called."""
    help: str
    """One line for `offing --help`."""


COMMANDS: Registry[Command] = Registry(
    Group.COMMANDS,
    "a command",
    accepts=lambda value: isinstance(value, Command),
    remedy="Register an offing.cli.command.Command.",
)
"""The commands that packages add, by name."""
