import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useLayoutEffect, useMemo, useRef } from "react";
import type { Graph } from "@/shared/api/installation";
import { type NodeUsage, nodesQuery } from "@/shared/api/run-views";
import type { RunDetail } from "@/shared/api/runs";
import { joinParts } from "@/shared/format/lists";
import { formatCompact, formatCount, formatMs, formatUsd } from "@/shared/format/numbers";
import { EmptyState } from "@/shared/ui/empty-state";
import { Loaded } from "@/shared/ui/loaded";
import { type Column, Table } from "@/shared/ui/table";
import { findCurrentNode } from "./current-node";
import styles from "./graph-view.module.css";
import { END, edgePath, heightOf, layOutGraph, NODE_WIDTH, START } from "./layout";

interface GraphViewProps {
  run: RunDetail;
  /** `null` means that the installation has no graph of this name now. */
  graph: Graph | null;
  active: boolean;
  /** Node whose steps the timeline shows. Empty means all. */
  node: string;
  onNode(name: string): void;
}

/** The graph of the run as a drawing and as a table, with what each node has used. A node opens its steps. */
export function GraphView({ run, graph, active, node, onNode }: GraphViewProps) {
  const nodes = useQuery(nodesQuery(run.id, active));
  return (
    <div className={styles.view}>
      <Loaded query={nodes} label={t`the nodes`}>
        {({ items }) => {
          const current = run.status === "running" ? findCurrentNode(run.live?.current_action ?? null, items) : null;
          const shared = { usage: items, current, selected: node, onNode };
          return (
            <>
              {graph && graph.nodes.length > 0 ? <Drawing graph={graph} {...shared} /> : <NotDrawn graph={graph} />}
              {graph && graph.version !== run.graph_version && (
                <p className="quiet">
                  <Trans>
                    The run began with another version of this graph. The drawing is that of the current one.
                  </Trans>
                </p>
              )}
              <NodeTable {...shared} />
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function NotDrawn({ graph }: { graph: Graph | null }) {
  return (
    <EmptyState title={t`This graph cannot be drawn`}>
      {graph
        ? t`It could not be built without a run. The table shows what its nodes have recorded.`
        : t`This installation has no graph of this name now. The table shows what its nodes have recorded.`}
    </EmptyState>
  );
}

interface NodesProps {
  usage: readonly NodeUsage[];
  /** Node that works now. `null` means none, or unknown. */
  current: string | null;
  selected: string;
  onNode(name: string): void;
}

function Drawing({ graph, usage, current, selected, onNode }: NodesProps & { graph: Graph }) {
  const layout = useMemo(() => layOutGraph(graph.nodes, graph.edges), [graph]);
  const byName = new Map(usage.map((one) => [one.node, one]));
  const scroller = useRef<HTMLElement>(null);
  // A drawing that is wider than the screen opens in the middle of its nodes.
  useLayoutEffect(() => {
    const xs = [...layout.nodes.values()].map(({ x }) => x);
    if (!scroller.current || xs.length === 0) return;
    scroller.current.scrollLeft = (Math.min(...xs) + Math.max(...xs) - scroller.current.clientWidth) / 2;
  }, [layout]);
  return (
    <>
      <section ref={scroller} className={styles.scroller} aria-label={t`Drawing of the graph`}>
        <div className={styles.drawing} style={{ width: layout.width, height: layout.height }}>
          <svg width={layout.width} height={layout.height} aria-hidden="true">
            <defs>
              <marker
                id="graph-arrow"
                viewBox="0 0 8 8"
                refX="6"
                refY="4"
                markerWidth="7"
                markerHeight="7"
                orient="auto"
              >
                <path d="M0 0L8 4L0 8z" className={styles.arrow} />
              </marker>
            </defs>
            {layout.edges.map((edge) => (
              <path
                key={`${edge.source} ${edge.target}`}
                d={edgePath(edge)}
                className={edge.is_conditional ? styles.conditional : styles.edge}
                markerEnd="url(#graph-arrow)"
              />
            ))}
          </svg>
          {graph.nodes.map((name) => {
            const at = layout.nodes.get(name);
            const position = {
              insetInlineStart: (at?.x ?? 0) - NODE_WIDTH / 2,
              top: (at?.y ?? 0) - heightOf(name) / 2,
              width: NODE_WIDTH,
              height: heightOf(name),
            };
            if (name === START || name === END) {
              return (
                <span key={name} className={styles.end} style={position}>
                  <span>{name === START ? t`start` : t`end`}</span>
                </span>
              );
            }
            const used = byName.get(name);
            return (
              <button
                key={name}
                type="button"
                className={`${styles.node} ${used ? "" : styles.unused} ${name === current ? styles.current : ""}`}
                style={position}
                aria-current={name === current ? "step" : undefined}
                aria-pressed={name === selected}
                title={t`Show the steps of this node in the timeline`}
                onClick={() => onNode(name)}
              >
                <b>{name}</b>
                <span className="num">{used ? describeUsage(used) : t`no calls yet`}</span>
              </button>
            );
          })}
        </div>
      </section>
      <p className="quiet">
        <Trans>Dashed: the graph decides in each run whether it takes this way.</Trans>
      </p>
    </>
  );
}

/** Return visits, duration, and tokens or cost in a few words. */
function describeUsage({ visits, ms, tokens, cost_usd: usd }: NodeUsage): string {
  return joinParts([
    plural(visits, { one: "# visit", other: "# visits" }),
    formatMs(ms),
    ...(usd > 0 ? [formatUsd(usd)] : tokens > 0 ? [t`${formatCompact(tokens)} tok`] : []),
  ]);
}

function NodeTable({ usage, current, onNode }: NodesProps) {
  if (usage.length === 0) {
    return (
      <p className="quiet">
        <Trans>No node has recorded a call yet.</Trans>
      </p>
    );
  }
  const columns: Column<NodeUsage>[] = [
    {
      header: t`Node`,
      cell: ({ node }) =>
        node === "" ? (
          <span className="quiet">{t`in parallel, unknown`}</span>
        ) : (
          <>
            <button type="button" className={styles.link} onClick={() => onNode(node)}>
              {node}
            </button>
            {node === current && <span className="quiet"> {t`works now`}</span>}
          </>
        ),
    },
    { header: t`Visits`, isNumber: true, cell: ({ visits }) => formatCount(visits) },
    { header: t`Steps`, isNumber: true, cell: ({ steps }) => formatCount(steps) },
    { header: t`Time in calls`, isNumber: true, cell: ({ ms }) => formatMs(ms) },
    {
      header: t`Time per visit`,
      isNumber: true,
      cell: ({ ms, visits }) => formatMs(visits > 0 ? ms / visits : 0),
    },
    { header: t`Tokens`, isNumber: true, cell: ({ tokens }) => formatCount(tokens) },
    { header: t`Cost`, isNumber: true, cell: ({ cost_usd: usd }) => formatUsd(usd) },
  ];
  return (
    <Table
      caption={t`What each node has used`}
      columns={columns}
      rows={usage}
      rowKey={({ node }) => node || "unknown"}
    />
  );
}
