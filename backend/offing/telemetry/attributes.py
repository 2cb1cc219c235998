"""Names of span attributes.

GenAI names follow OpenTelemetry's semantic conventions, which are not final; Offing's own names
start with `offing.`. No attribute contains content: prompts, answers and documents are never
part of a trace.
"""

from offing.core.model import Usage

OPERATION_NAME = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
"""Seconds from the request to the first token, for streamed answers only."""
AGENT_NAME = "gen_ai.agent.name"
TOOL_NAME = "gen_ai.tool.name"
CONVERSATION_ID = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"

CHAT = "chat"
EMBEDDINGS = "embeddings"
RERANK = "rerank"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
"""Values of `OPERATION_NAME`."""

RUN_ID = "offing.run.id"
TENANT_ID = "offing.tenant.id"
GRAPH = "offing.graph"
NODE = "offing.node"
ROLE = "offing.role"
ENGINE = "offing.engine"
TURN = "offing.turn"
FENCING_TOKEN = "offing.fence"
ATTEMPT = "offing.attempt"
SLOT_WAIT_SECONDS = "offing.slot_wait.seconds"
"""Seconds for which the role call has waited for call slots so far. Absent if it has not."""
COST_USD = "offing.cost.usd"
TOOL_DECISION = "offing.tool.decision"

Attribute = str | int | float | bool


def build_usage_attributes(usage: Usage) -> dict[str, Attribute]:
    """Return token counts and cost of a finished call as attributes."""
    return {INPUT_TOKENS: usage.prompt_tokens, OUTPUT_TOKENS: usage.completion_tokens, COST_USD: float(usage.cost_usd)}
