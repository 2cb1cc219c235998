"""Why something does not work yet, in words. A test that is expected to fail for a reason tells when it passes."""

from collections.abc import Mapping

NO_STEP = "A tool of the graph's own leaves no step: nothing stands between ToolNode and the tool."
NO_STORE = "A graph that was compiled without a store is given none: runtime.store is None."
DELTAS = (
    "DeltaChannel keeps its values in earlier checkpoints and their writes, and of such a run only the latest is kept,"
    " without writes: messages and files are lost as soon as the state is read back."
)
NO_SAVER = (
    "Graphs run with durability `sync`, under which LangGraph waits for a checkpoint that a subgraph compiled with"
    " `checkpointer=False` never writes."
)
OTHER_CONFIG = (
    "Where a model is called with a config of its own, as summaries are, the metadata of its node are not in force, and"
    " the place of the call is not found."
)

NO_LIMIT = (
    "The limit on steps that a graph was compiled with is replaced by one of a million, so that LangGraph's last step"
    " never comes."
)
UNTRACKED = (
    "A slice ends within an invocation, which LangGraph alone never does, and values that LangGraph does not save, as"
    " the counters of limits, begin again with the next one."
)
NO_FORM = "The answer is taken as it was typed, whatever form the interrupt needs, and what does not fit ends the run."
NO_WRITER = "A graph that knows the SDK is run without LangGraph's custom stream, and what its writer is given is lost."

STORELESS: Mapping[str, str] = dict.fromkeys(("runs", "survives", "follows", "tools", "rows"), NO_STORE)


def stepless(**others: str) -> Mapping[str, str]:
    return {"tools": NO_STEP, **others}
