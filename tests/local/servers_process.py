"""Holds the servers of one home until killed; its first line says where they are. Run as `servers_process.py HOME`."""

import json
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from offing.local import open_servers
from offing.settings import Settings


def main(home: str) -> None:
    done = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        done.set()

    signal.signal(signal.SIGTERM, stop)
    with open_servers(Settings(home=Path(home), database_url=None, redis_url=None)) as servers:
        print(json.dumps(asdict(servers)), flush=True)
        done.wait()


main(sys.argv[1])
