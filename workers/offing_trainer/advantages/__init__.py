"""Advantage estimators and advantage modifiers. Each module defines one plug-in or two related ones."""
