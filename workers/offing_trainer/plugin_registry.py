"""Registry of the plug-ins of the training pipeline, by kind and name: `advantage.group-z`."""

from collections.abc import Iterable, Mapping

from offing.registry import Group, Registry
from offing.services.graphs import register_folders
from offing.settings import load_settings
from offing_trainer.plugin import Plugin

PluginRegistry = Mapping[str, Plugin]
"""Plug-ins by `Plugin.key`."""

PLUGINS: Registry[Plugin] = Registry(
    Group.TRAINING,
    "a plug-in",
    accepts=lambda value: isinstance(value, Plugin),
    remedy="Register an offing_trainer.plugin.Plugin.",
    name_of=lambda plugin: plugin.key,
)
"""The installed plug-ins, and those of registered folders."""


def load_registry() -> PluginRegistry:
    """Return the plug-ins of this installation, including those in the folders that the settings name."""
    register_folders(load_settings())
    return PLUGINS


def build_registry(plugins: Iterable[Plugin]) -> PluginRegistry:
    """Index plug-ins by kind and name."""
    return {plugin.key: plugin for plugin in plugins}
