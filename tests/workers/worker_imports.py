"""All that a worker imports, and the client of model providers; see `forking`.

No thread that is started here is left, and no connection is opened: what is forked could use neither.
"""

import asyncio
import threading
from importlib import import_module

from offing.models import litellm_client
from offing.services.graphs import open_registry
from tests.workers.processes import ALL_GRAPHS

for name in ("offing_workers.app", "celery.apps.worker", "celery.bin.worker", "celery.concurrency.thread"):
    import_module(name)
open_registry(ALL_GRAPHS)
asyncio.run(litellm_client.get_litellm())
assert threading.active_count() == 1, threading.enumerate()
