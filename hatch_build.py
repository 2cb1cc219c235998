"""Puts the built page and the migrations into the wheel; an editable install reads both from the checkout."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackagedFolders(BuildHookInterface[Any]):
    """Adds each folder that exists, so that a wheel without a built page still has its API."""

    folders = (("frontend/dist", "offing/_web"), ("migrations", "offing/_migrations"))

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for folder, target in self.folders:
            if (Path(self.root) / folder).is_dir():
                build_data["force_include"][folder] = target
