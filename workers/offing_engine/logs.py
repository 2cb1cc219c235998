"""What transformers writes besides our own lines: nothing."""


def quiet() -> None:
    """No progress bars: nobody watches the log."""
    from transformers.utils import logging

    logging.disable_progress_bar()
