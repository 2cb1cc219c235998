"""Entry point of `offing`: answer `offing --help` quickly, and run every other command line."""

import sys

from offing import environment
from offing.cli.root_help import ROOT_HELP_ARGUMENTS, print_root_help
from offing.garbage_collection import collect_rarely

EXIT_FAILED, EXIT_USAGE, EXIT_UNAVAILABLE = 1, 2, 3


def main() -> None:
    """Run the command line.

    An expected error is printed as one line on standard error and sets the exit code.
    """
    if sys.argv[1:] in ROOT_HELP_ARGUMENTS and print_root_help():
        sys.exit(0)
    collect_rarely()
    from offing.core.errors import InvalidInput, OffingError, Unavailable

    try:
        code = _run_command()
    except InvalidInput as error:
        code = _print_error(error, EXIT_USAGE)
    except Unavailable as error:
        code = _print_error(error, EXIT_UNAVAILABLE)
    except OffingError as error:
        code = _print_error(error, EXIT_FAILED)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = EXIT_FAILED
    sys.exit(code if isinstance(code, int) else 0)


def _run_command() -> object:
    from offing.cli.commands import app
    from offing.settings import is_langgraph_project

    is_own_start = environment.find_ready_file() is None  # otherwise `offing up` has prepared our environment
    if is_own_start and not is_langgraph_project():  # its `.env` belongs to its graphs
        from dotenv import load_dotenv

        load_dotenv(".env")  # also loads provider keys, which engines read from the environment
    return app()


def _print_error(error: Exception, code: int) -> int:
    print(f"offing: {error}", file=sys.stderr)
    return code
