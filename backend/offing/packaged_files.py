"""Locations of the migrations and the built web UI: in an installed wheel, else in the checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def get_migrations_dir() -> Path:
    """Return the folder of migrations. Raises FileNotFoundError if the installation is incomplete."""
    for folder in (_PACKAGE / "_migrations", _CHECKOUT / "migrations"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("The migrations are missing from this installation. Install offing again.")


def find_web_dir() -> Path | None:
    """Return the folder of the built web UI, or `None` if it has not been built (`make setup` builds it)."""
    for folder in (_PACKAGE / "_web", _CHECKOUT / "frontend" / "dist"):
        if (folder / "index.html").is_file():
            return folder
    return None
