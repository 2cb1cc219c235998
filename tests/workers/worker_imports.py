"""All that a worker imports, at its start and with its first run, and the client of model providers.

See `worker_forks`. No thread that is started here is left, and no connection is opened: what is forked could use
neither.
"""

import asyncio
import os
import sys
import threading
from importlib import import_module

from offing.models import litellm_client
from offing.services.graphs import open_registry
from offing.web.provider import SEARCH_ENGINES
from tests.workers.processes import ALL_GRAPHS
from tests.workers.worker_forks import IMPORT_PATH_VARIABLE

sys.path[:] = os.environ[IMPORT_PATH_VARIABLE].split(os.pathsep)
for name in (
    "offing_workers.app",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.loops",
    "celery.worker.strategy",
    "celery.fixups.django",
    "celery.events",
    "offing.models.litellm_embedder",
    "offing.models.litellm_reranker",
):
    import_module(name)
list(SEARCH_ENGINES.values())
open_registry(ALL_GRAPHS)
asyncio.run(litellm_client.get_litellm())
# What a call of litellm imports when it is the first one, or the first that fails. Only its client may import litellm
# itself, which would otherwise download a list of prices.
for name in (
    "fastapi",
    "litellm._service_logger",
    "litellm.llms.litellm_proxy.chat.transformation",
    "litellm.llms.openai.chat.gpt_audio_transformation",
    "litellm.llms.openai_like.dynamic_config",
    "litellm.llms.vertex_ai.vertex_ai_partner_models.anthropic.transformation",
    "litellm.proxy.guardrails.exception_utils",
    "openai.lib.streaming.chat",
    "openai.resources",
):
    import_module(name)
assert threading.active_count() == 1, threading.enumerate()
