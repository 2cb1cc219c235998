import type { Spending } from "@/shared/api/settings";

export interface ModelSum {
  name: string;
  calls: number;
  promptTokens: number;
  completionTokens: number;
  cost: number;
  /** Whether the price of every call is known. */
  isPriced: boolean;
}

/** Add up the days of each model, most expensive first. Pure. */
export function sumByModel(models: Spending["models"]): ModelSum[] {
  const sums = new Map<string, ModelSum>();
  for (const one of models) {
    const name = one.model ? `${one.engine}:${one.model}` : one.engine;
    const sum = sums.get(name) ?? { name, calls: 0, promptTokens: 0, completionTokens: 0, cost: 0, isPriced: true };
    sums.set(name, {
      name,
      calls: sum.calls + one.call_count,
      promptTokens: sum.promptTokens + one.prompt_tokens,
      completionTokens: sum.completionTokens + one.completion_tokens,
      cost: sum.cost + one.cost_usd,
      isPriced: sum.isPriced && one.is_priced,
    });
  }
  return [...sums.values()].sort((one, other) => other.cost - one.cost || other.calls - one.calls);
}
