import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type PointerEvent, useState } from "react";
import { CRITIC_HEADS, explainedVarianceMetric } from "@/shared/api/training";
import { findPoint, findRange, fitScale, linePath, stepAtX, stepX, valueY } from "@/shared/chart/line-geometry";
import { useWidth } from "@/shared/ui/hooks";
import { buildGroupBars, groupBarPaths, type Series } from "./curve-geometry";
import { formatMetric } from "./training-labels";

interface Chart {
  title: MessageDescriptor;
  /** Explanation of the metric. */
  description: MessageDescriptor;
  lines: readonly { name: string; prefix?: MessageDescriptor }[];
}

const CHARTS: readonly Chart[] = [
  { title: msg`Reward`, description: msg`Mean over the rollouts of a step`, lines: [{ name: "reward" }] },
  {
    title: msg`Success`,
    description: msg`Fraction of rollouts that completed their task`,
    lines: [{ name: "success_rate" }],
  },
  {
    title: msg`Violations`,
    description: msg`Fraction of rollouts that violated a rule of the graph`,
    lines: [{ name: "violation_fraction" }],
  },
  {
    title: msg`Entropy`,
    description: msg`Nats per token; falls as the policy becomes more certain`,
    lines: [{ name: "entropy" }],
  },
  {
    title: msg`KL`,
    description: msg`Nats per token, relative to the weights that sampled`,
    lines: [{ name: "kl" }],
  },
  {
    title: msg`Gradient norm`,
    description: msg`Before clipping; mean over the updates of a step`,
    lines: [{ name: "grad_norm" }],
  },
  {
    title: msg`Clipped`,
    description: msg`Fraction of tokens whose ratio was outside the clip range, below (dashed) and above`,
    lines: [
      { name: "clip_high", prefix: msg`above ` },
      { name: "clip_low", prefix: msg`below ` },
    ],
  },
];

const CRITIC_TITLES: Record<(typeof CRITIC_HEADS)[number], MessageDescriptor> = {
  value: msg`Explained variance`,
  value_high: msg`Explained variance, subgoals`,
  value_low: msg`Explained variance, actions`,
  value_switch: msg`Explained variance, switches`,
};

/** Shown only for jobs with a critic. */
const CRITIC_CHARTS: readonly Chart[] = CRITIC_HEADS.map((head) => ({
  title: CRITIC_TITLES[head],
  description: msg`Fraction of the variance of the returns of turns that the critic explains: 1 is all of it, 0 is no better than a constant`,
  lines: [{ name: explainedVarianceMetric(head) }],
}));

const HEIGHT_PX = 84;

interface CurvesProps {
  series: Series;
  /** Number of steps in the full width. */
  steps: number;
  /** Steps that a guard or a non-finite gradient stopped. */
  problemSteps: readonly number[];
}

/** Small charts over the same steps. Hovering over one shows the values of that step in all of them. */
export function Curves({ series, steps, problemSteps }: CurvesProps) {
  const [hoveredStep, setHoveredStep] = useState<number | null>(null);
  const shared = { series, steps, problemSteps, hoveredStep, onHover: setHoveredStep };
  return (
    <section className="curves" aria-label={t`Curves`}>
      {[...CHARTS, ...CRITIC_CHARTS.filter(({ lines }) => lines.some(({ name }) => series.has(name)))].map((one) => (
        <Curve key={one.lines[0]?.name} chart={one} {...shared} />
      ))}
    </section>
  );
}

interface CurveProps extends CurvesProps {
  chart: Chart;
  hoveredStep: number | null;
  onHover(step: number | null): void;
}

function Curve({ chart, series, steps, problemSteps, hoveredStep, onHover }: CurveProps) {
  const [element, setBox] = useState<HTMLElement | null>(null);
  const width = useWidth(element);
  const { lines } = chart;
  const title = i18n._(chart.title);
  const hint = i18n._(chart.description);
  const points = lines.map(({ name }) => series.get(name) ?? []);
  const scale = fitScale(points, width, HEIGHT_PX, steps);
  const isMeasured = points.some((line) => line.length > 0);
  const valueLabel = lines
    .map(({ prefix }, nth) => valueText(prefix ? i18n._(prefix) : "", findPoint(points[nth] ?? [], hoveredStep)?.value))
    .join(" · ");
  const handlePointerMove = (event: PointerEvent) => {
    const from = event.currentTarget.getBoundingClientRect();
    onHover(stepAtX(event.clientX - from.left, from.width, steps));
  };
  return (
    <figure className="curve">
      <figcaption title={hint}>
        <b>{title}</b>
        <span className="num">{isMeasured ? valueLabel : t`not measured`}</span>
        {hoveredStep !== null && isMeasured && (
          <span className="quiet num">
            <Trans>step {hoveredStep}</Trans>
          </span>
        )}
      </figcaption>
      <div ref={setBox} onPointerMove={handlePointerMove} onPointerLeave={() => onHover(null)}>
        <svg
          width={width}
          height={HEIGHT_PX}
          role="img"
          aria-label={`${title}: ${isMeasured ? valueLabel : t`not measured`}`}
        >
          {problemSteps.map((step) => (
            <path key={step} className="curve-problem" d={`M${stepX(step, scale)} 0V${HEIGHT_PX}`} />
          ))}
          {hoveredStep !== null && <path className="curve-cursor" d={`M${stepX(hoveredStep, scale)} 0V${HEIGHT_PX}`} />}
          {points.map((line, nth) => (
            <path
              key={lines[nth]?.name}
              className={nth === 0 ? "curve-line" : "curve-line second"}
              d={linePath(line, scale)}
            />
          ))}
          {points.map((line, nth) => {
            const at = findPoint(line, hoveredStep);
            if (at?.value === null || at?.value === undefined) return null;
            return (
              <circle
                key={lines[nth]?.name}
                className="curve-dot"
                cx={stepX(at.step, scale)}
                cy={valueY(at.value, scale)}
                r="2.5"
              />
            );
          })}
        </svg>
      </div>
      <p className="curve-ends quiet num" aria-hidden="true">
        {isMeasured && rangeText(findRange(points))}
      </p>
    </figure>
  );
}

/** Return the measured range, not the range of the chart's scale. */
export function rangeText(range: { low: number; high: number } | null): string {
  if (range === null) return t`no finite value`;
  const { low, high } = range;
  return low === high ? t`${formatMetric(low)} throughout` : t`${formatMetric(low)} to ${formatMetric(high)}`;
}

function valueText(prefix: string, value: number | null | undefined): string {
  if (value === undefined) return `${prefix}–`;
  return `${prefix}${value === null ? t`not finite` : formatMetric(value)}`;
}

const GROUPS_HEIGHT_PX = 56;

/** Groups of each step on one line: informative groups above it, the others below it. */
export function GroupOutcomeChart({ series, steps }: { series: Series; steps: number }) {
  const [element, setBox] = useState<HTMLElement | null>(null);
  const width = useWidth(element);
  const paths = groupBarPaths(buildGroupBars(series), { width, height: GROUPS_HEIGHT_PX, steps });
  const strokeWidth = Math.max(0.8, Math.min(6, (width / Math.max(1, steps)) * 0.6));
  return (
    <div ref={setBox} className="group-outcomes">
      <svg width={width} height={GROUPS_HEIGHT_PX} role="img" aria-label={t`Groups by step`} strokeWidth={strokeWidth}>
        <path className="curve-base" d={`M0 ${GROUPS_HEIGHT_PX / 2}H${width}`} />
        <path className="groups-informative" d={paths.informative} />
        <path className="groups-uniform" d={paths.uniform} />
        <path className="groups-unused" d={paths.unused} />
      </svg>
    </div>
  );
}
