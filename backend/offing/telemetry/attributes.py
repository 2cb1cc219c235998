"""The only home of span attribute names.

GenAI names follow OpenTelemetry's semantic conventions, which still move; the rest are ours under `offing.`. No name
here carries content: prompts, answers and documents stay out of traces.
"""

from offing.core.model import Usage

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
AGENT_NAME = "gen_ai.agent.name"
TOOL_NAME = "gen_ai.tool.name"
CONVERSATION = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"

CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
"""Values of `OPERATION`."""

RUN = "offing.run.id"
TENANT = "offing.tenant.id"
GRAPH = "offing.graph"
NODE = "offing.node"
ROLE = "offing.role"
ENGINE = "offing.engine"
TURN = "offing.turn"
FENCE = "offing.fence"
ATTEMPT = "offing.attempt"
COST = "offing.cost.usd"
DECISION = "offing.tool.decision"

Attribute = str | int | float | bool


def usage_attributes(usage: Usage) -> dict[str, Attribute]:
    """Tokens and money of a finished call."""
    return {INPUT_TOKENS: usage.prompt_tokens, OUTPUT_TOKENS: usage.completion_tokens, COST: float(usage.usd)}
