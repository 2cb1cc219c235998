"""The command `offing world`."""

from offing.cli.command import Command

COMMAND = Command("offing_world.cli:app", "Made-up worlds to train, evaluate and show agents in.")
