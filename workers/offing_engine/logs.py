"""Silence the output of transformers."""


def disable_progress_bars() -> None:
    """Disable progress bars, which are useless in a log."""
    from transformers.utils import logging

    logging.disable_progress_bar()
