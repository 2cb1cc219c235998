import { type PointerEvent, useState } from "react";
import { explainedBy, HEADS } from "@/shared/api/training";
import { useWidth } from "@/shared/ui/hooks";
import {
  barPaths,
  groupBars,
  pathOf,
  pointAt,
  rangeOf,
  type Series,
  scaleOf,
  stepAt,
  xOf,
  yOf,
} from "./curve-geometry";
import { figure } from "./training-words";

interface Figure {
  title: string;
  /** What it says, for who does not know it. */
  hint: string;
  lines: readonly { name: string; says: string }[];
}

const FIGURES: readonly Figure[] = [
  { title: "Reward", hint: "Mean of a step's rollouts", lines: [{ name: "reward", says: "" }] },
  { title: "Success", hint: "Share of rollouts that did their task", lines: [{ name: "success", says: "" }] },
  { title: "Entropy", hint: "Nats a token; falls as the policy grows sure", lines: [{ name: "entropy", says: "" }] },
  { title: "KL", hint: "Nats a token from the weights that sampled", lines: [{ name: "kl", says: "" }] },
  {
    title: "Gradient norm",
    hint: "Before clipping, mean of a step's updates",
    lines: [{ name: "grad_norm", says: "" }],
  },
  {
    title: "Clipped",
    hint: "Share of tokens whose ratio left the band below (dashed) and above",
    lines: [
      { name: "clip_high", says: "above " },
      { name: "clip_low", says: "below " },
    ],
  },
];

const FORESEEN: Record<(typeof HEADS)[number], string> = {
  value: "Explained by the critic",
  value_high: "Explained by the critic of subgoals",
  value_low: "Explained by the critic of actions",
  value_term: "Explained by the critic of switches",
};

/** Only for jobs that have a critic. */
const CRITICS: readonly Figure[] = HEADS.map((head) => ({
  title: FORESEEN[head],
  hint: "Share of the variance of what a turn came to: 1 all of it, 0 no better than one number for all turns",
  lines: [{ name: explainedBy(head), says: "" }],
}));

const HEIGHT = 84;

interface CurvesProps {
  series: Series;
  /** Steps that the width stands for. */
  steps: number;
  /** Steps at which something went wrong. */
  marks: readonly number[];
}

/** Small curves over the same steps. Pointing at one tells the figures of that step in all. */
export function Curves({ series, steps, marks }: CurvesProps) {
  const [pointed, setPointed] = useState<number | null>(null);
  const shared = { series, steps, marks, pointed, onPoint: setPointed };
  return (
    <section className="curves" aria-label="Curves">
      {[...FIGURES, ...CRITICS.filter(({ lines }) => lines.some(({ name }) => series.has(name)))].map((one) => (
        <Curve key={one.title} figure={one} {...shared} />
      ))}
    </section>
  );
}

interface CurveProps extends CurvesProps {
  figure: Figure;
  pointed: number | null;
  onPoint(step: number | null): void;
}

function Curve({ figure: { title, hint, lines }, series, steps, marks, pointed, onPoint }: CurveProps) {
  const [box, setBox] = useState<HTMLElement | null>(null);
  const width = useWidth(box);
  const points = lines.map(({ name }) => series.get(name) ?? []);
  const scale = scaleOf(points, width, HEIGHT, steps);
  const known = points.some((line) => line.length > 0);
  const said = lines.map(({ says }, nth) => valueWords(says, pointAt(points[nth] ?? [], pointed)?.value)).join(" · ");
  const move = (event: PointerEvent) => {
    const from = event.currentTarget.getBoundingClientRect();
    onPoint(stepAt(event.clientX - from.left, from.width, steps));
  };
  return (
    <figure className="curve">
      <figcaption title={hint}>
        <b>{title}</b>
        <span className="num">{known ? said : "not measured"}</span>
        {pointed !== null && known && <span className="quiet num">step {pointed}</span>}
      </figcaption>
      <div ref={setBox} onPointerMove={move} onPointerLeave={() => onPoint(null)}>
        <svg width={width} height={HEIGHT} role="img" aria-label={`${title}: ${known ? said : "not measured"}`}>
          {marks.map((step) => (
            <path key={step} className="curve-mark" d={`M${xOf(step, scale)} 0V${HEIGHT}`} />
          ))}
          {pointed !== null && <path className="curve-here" d={`M${xOf(pointed, scale)} 0V${HEIGHT}`} />}
          {points.map((line, nth) => (
            <path
              key={lines[nth]?.name}
              className={nth === 0 ? "curve-line" : "curve-line second"}
              d={pathOf(line, scale)}
            />
          ))}
          {points.map((line, nth) => {
            const at = pointAt(line, pointed);
            if (at?.value === null || at?.value === undefined) return null;
            return (
              <circle
                key={lines[nth]?.name}
                className="curve-dot"
                cx={xOf(at.step, scale)}
                cy={yOf(at.value, scale)}
                r="2.5"
              />
            );
          })}
        </svg>
      </div>
      <p className="curve-ends quiet num" aria-hidden="true">
        {known && rangeWords(rangeOf(points))}
      </p>
    </figure>
  );
}

/** What was measured, and never the ends of the drawing's own scale. */
export function rangeWords(range: { low: number; high: number } | null): string {
  if (range === null) return "no finite value";
  const { low, high } = range;
  return low === high ? `${figure(low)} throughout` : `${figure(low)} to ${figure(high)}`;
}

function valueWords(says: string, value: number | null | undefined): string {
  if (value === undefined) return `${says}–`;
  return `${says}${value === null ? "not finite" : figure(value)}`;
}

const GROUPS = 56;

/** The groups of each step on one line: above it those that teach, below it those that do not. */
export function GroupHorizon({ series, steps }: { series: Series; steps: number }) {
  const [box, setBox] = useState<HTMLElement | null>(null);
  const width = useWidth(box);
  const paths = barPaths(groupBars(series), { width, height: GROUPS, steps });
  const thick = Math.max(0.8, Math.min(6, (width / Math.max(1, steps)) * 0.6));
  return (
    <div ref={setBox} className="group-horizon">
      <svg width={width} height={GROUPS} role="img" aria-label="Groups by step" strokeWidth={thick}>
        <path className="curve-base" d={`M0 ${GROUPS / 2}H${width}`} />
        <path className="groups-differing" d={paths.differing} />
        <path className="groups-alike" d={paths.alike} />
        <path className="groups-lost" d={paths.lost} />
      </svg>
    </div>
  );
}
