"""The command `offing world`."""

from offing.cli.command import Command

COMMAND = Command("offing_world.cli:app", "Synthetic worlds to train, evaluate and demonstrate agents.")
