/** What answered a run: in the words of a person, and as it is configured. Pure. */

import { t } from "@lingui/core/macro";
import type { Run } from "../api/runs";

/** Return the names of the models of a run, or that there was none. */
export function describeAnswerers(engines: Run["engines"]): string {
  const configs = Object.values(engines);
  if (configs.length === 0) return t`Default model`;
  const models = [...new Set(configs.flatMap((config) => describeModel(config.engine, config.model)))];
  if (models.length === 0) return t`Without a model`;
  return models.join(", ");
}

/** Return the short name of a model: `gpt-5-mini` of `openai/gpt-5-mini`. An engine without a model has none. */
function describeModel(engine: string | undefined, model: string | undefined): string[] {
  if (model) return [model.slice(model.lastIndexOf("/") + 1)];
  return !engine || engine === "extractive" || engine === "rules" ? [] : [engine];
}

/** Return the graph and the engines as they are configured: `agentflow · extractive`. */
export function describeTechnically({ graph, engines }: Pick<Run, "graph" | "engines">): string {
  const names = new Set(
    Object.values(engines).map((config) => {
      const name = [config.model || config.engine, ...(config.fallbacks ?? []).map((one) => one.model)].join(" / ");
      return config.prompt_library ? `${name} + ${config.prompt_library}` : name;
    }),
  );
  return [graph, ...names].join(" · ");
}
