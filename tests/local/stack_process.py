"""One command of a home: servers, a worker and a part in its engine, until a line comes in.

Run as `hold_stack.py HOME`. Its first line says where the servers and the engine are.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from offing.cli.hooks import build_hooks
from offing.local.stack import open_stack
from offing.settings import Settings


def main(home: str) -> None:
    settings = Settings(home=Path(home), database_url=None, redis_url=None)
    with open_stack(settings, build_hooks(), say=lambda line: print(line, file=sys.stderr, flush=True)) as servers:
        print(json.dumps(asdict(servers)), flush=True)
        sys.stdin.readline()


main(sys.argv[1])
