"""Values that several examples of API schemas share."""

from typing import Any

Example = dict[str, Any]

RUN_ID = "01980000-0000-7000-8000-00000000000a"
SOURCE_ID = "01980000-0000-7000-8000-00000000000c"
TEXT_ID = "01980000-0000-7000-8000-00000000000d"
QUOTE = "A Pool keeps several Client instances connected to the same upstream target."
TIMESTAMP = "2026-11-21T09:00:00Z"
SNAPSHOT_SHA256 = "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c"

EXTRACTIVE_ENGINE_EXAMPLE: Example = {
    "engine": "extractive",
    "model": "",
    "temperature": None,
    "max_tokens": None,
    "timeout_seconds": None,
    "api_base": "",
    "options": {},
}
