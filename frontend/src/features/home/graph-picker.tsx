import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type RunStatistics, runStatisticsQuery } from "@/shared/api/asking";
import { type Graph, graphsQuery } from "@/shared/api/installation";
import { joinList } from "@/shared/format/lists";
import { formatCompact, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { graphTitle, offerText } from "@/shared/texts/offer-texts";
import { Failure, Loaded } from "@/shared/ui/loaded";
import styles from "./options.module.css";
import { FieldError, type OptionsProps, Section } from "./options-section";

/** The graphs with what each is good for, its roles, and what its past runs took. */
export function GraphPicker({ settings, errors, onChange }: OptionsProps) {
  const graphs = useQuery(graphsQuery);
  const statistics = useQuery(runStatisticsQuery);
  return (
    <Section title={t`Graph`}>
      <Loaded query={graphs} label={t`the graphs`}>
        {(listed) => (
          <div className={styles.graphs}>
            {withSelected(listed, settings.graph).map((graph) => (
              <label key={graph.name} className={styles.choice}>
                <input
                  type="radio"
                  name="question-graph"
                  checked={settings.graph === graph.name}
                  onChange={() => onChange(selectGraph(graph))}
                />
                <span>
                  <b>{graphTitle(graph)}</b>
                  {graph.description && (
                    <span className={styles.note}>{offerText(graph.description, graph.texts.description)}</span>
                  )}
                  {graph.roles.length > 0 && (
                    <span className={styles.note}>
                      <Trans>Roles: {joinList(graph.roles)}</Trans>
                    </span>
                  )}
                  <span className={styles.fact}>{describePastRuns(statistics.data?.items, graph.name)}</span>
                </span>
              </label>
            ))}
          </div>
        )}
      </Loaded>
      <Failure query={statistics} />
      <FieldError text={errors.graph} />
    </Section>
  );
}

/** Another graph drops what it does not have: engines of its roles, and interactions. */
function selectGraph(graph: Pick<Graph, "name" | "interactions">) {
  const interactions = graph.interactions ?? [];
  return {
    graph: graph.name,
    roleEngines: {},
    ...(interactions.includes("clarify") ? {} : { clarify: false }),
    ...(interactions.includes("plan_review") ? {} : { reviewPlan: false }),
  };
}

/** The selected graph stays in the list even if the server does not offer it, so that it can be seen and changed. */
type ListedGraph = Pick<Graph, "name" | "title" | "description" | "roles" | "interactions" | "texts">;

function withSelected(listed: readonly Graph[], selected: string): ListedGraph[] {
  const shown = listed.map(({ name, title, description, roles, interactions, texts }) => ({
    name,
    title,
    description,
    roles,
    interactions,
    texts,
  }));
  if (listed.some(({ name }) => name === selected)) return shown;
  const missing = {
    name: selected,
    title: selected,
    description: t`This graph is not available.`,
    roles: [],
    interactions: [],
    texts: {},
  };
  return [...shown, missing];
}

/** Return what half of the past runs of a graph took at most. Empty while it is loading. */
function describePastRuns(statistics: readonly RunStatistics[] | undefined, graph: string): string {
  if (!statistics) return "";
  const past = statistics.find((one) => one.graph === graph && one.models === null);
  if (!past) return t`No past runs.`;
  const turns = past.turns.median;
  const facts = [
    plural(Math.round(turns), { one: "# turn", other: "# turns" }),
    formatMs(past.seconds_per_turn.median * turns * 1000),
    ...(past.cost_usd_per_turn.median > 0 ? [formatUsd(past.cost_usd_per_turn.median * turns)] : []),
    ...(past.tokens_per_turn.median > 0 ? [t`${formatCompact(past.tokens_per_turn.median * turns)} tokens`] : []),
  ];
  return plural(past.runs, {
    one: `The only past run: ${joinList(facts)}.`,
    other: `Typical of ${formatCount(past.runs)} past runs: ${joinList(facts)}.`,
  });
}
