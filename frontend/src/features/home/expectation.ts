/** What a run is expected to take and cost, from past runs. Nothing is guessed where there are none. Pure. */

import { plural, t } from "@lingui/core/macro";
import type { RunStatistics } from "@/shared/api/asking";
import { formatCompact, formatCount, formatDuration, formatUsd } from "@/shared/format/numbers";
import { listRoleEngines, type Settings } from "./settings";

interface Range {
  low: number;
  high: number;
}

export interface Expectation {
  /** Number of past runs. */
  runs: number;
  /** Whether the past runs had the same models. Otherwise they are of the same graph with any model. */
  sameModels: boolean;
  /** For the whole run, if it uses all of its turns: half of the past runs were in this range. */
  seconds: Range;
  usd: Range;
  tokens: Range;
  /** Half of the past runs used at most this number of turns. */
  usualTurns: number;
}

/** Return the engines that the settings name, as statistics name them. `null` means that the server chooses some. */
function listModels(settings: Settings): string[] | null {
  const named = listRoleEngines(settings).map(([, engine]) => engine);
  if (settings.preset || !settings.engine.trim()) return null;
  const all = [settings.engine.trim(), ...named].map((engine) => engine.replace(/;.*$/s, "").replace(/\+[^:]*/, ""));
  return [...new Set(all)].sort();
}

/** Return what is expected of a run. `null` means that there is no past run of the graph. */
export function expect(statistics: readonly RunStatistics[], settings: Settings): Expectation | null {
  const ofGraph = statistics.filter(({ graph }) => graph === settings.graph);
  const models = listModels(settings)?.join(" ");
  const same = models === undefined ? undefined : ofGraph.find((one) => one.models?.join(" ") === models);
  const chosen = same ?? ofGraph.find((one) => one.models === null);
  if (!chosen) return null;
  const scale = ({ low, high }: Range) => ({ low: low * settings.turns, high: high * settings.turns });
  return {
    runs: chosen.runs,
    sameModels: same !== undefined,
    seconds: scale(chosen.seconds_per_turn),
    usd: scale(chosen.cost_usd_per_turn),
    tokens: scale(chosen.tokens_per_turn),
    usualTurns: Math.round(chosen.turns.median),
  };
}

/** Return a range as text: one value if both ends look the same. */
function formatRange({ low, high }: Range, format: (value: number) => string): string {
  const [from, to] = [format(low), format(high)];
  return from === to ? to : t`${from} to ${to}`;
}

/** Describe time and cost of `count` runs with all of their turns: `2 to 4 min and $0.10 to $0.20`. */
export function describeAmount({ seconds, usd, tokens }: Expectation, count = 1): string {
  const times = (range: Range) => ({ low: range.low * count, high: range.high * count });
  const time = formatRange(times(seconds), formatDuration);
  if (usd.high > 0) return t`${time} and ${formatRange(times(usd), formatUsd)}`;
  if (tokens.high > 0) return t`${time} and ${formatRange(times(tokens), formatCompact)} tokens`;
  return time;
}

/** Describe what a run with all of its turns takes, and which past runs say so. */
export function describeExpectation(expectation: Expectation | null, turns: number): string {
  if (!expectation) return t`There are no past runs of this graph to tell time and cost from.`;
  const amount = describeAmount(expectation);
  const { runs, usualTurns } = expectation;
  const sentences = [
    plural(turns, { one: `Its # turn takes ${amount}.`, other: `All # turns take ${amount}.` }),
    expectation.sameModels
      ? plural(runs, {
          one: "Based on # past run of this graph and model.",
          other: "Based on # past runs of this graph and model.",
        })
      : plural(runs, {
          one: "Based on # past run of this graph.",
          other: "Based on # past runs of this graph.",
        }),
  ];
  if (runs >= 3 && usualTurns < turns) sentences.push(t`Half of them ended within ${formatCount(usualTurns)} turns.`);
  return sentences.join(" ");
}
