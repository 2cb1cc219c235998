"""Where the migrations and the built page lie: inside an installed wheel, else in the checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def migrations_dir() -> Path:
    """The folder of `NNNN_name.sql` files. Raises FileNotFoundError when the installation is incomplete."""
    for folder in (_PACKAGE / "_migrations", _CHECKOUT / "migrations"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("The migrations are missing from this installation; install offing again.")


def web_dir() -> Path | None:
    """The folder of the built page, or None when it has not been built (`make setup` builds it)."""
    for folder in (_PACKAGE / "_web", _CHECKOUT / "frontend" / "dist"):
        if (folder / "index.html").is_file():
            return folder
    return None
