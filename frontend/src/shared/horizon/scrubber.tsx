import { type KeyboardEvent, type PointerEvent, useMemo, useState } from "react";
import { useWidth } from "../ui/hooks";
import { frameFor, seqAt, xOf } from "./geometry";
import { HorizonLine } from "./horizon";
import { letterOf, MARKS } from "./marks";

interface ScrubberProps {
  marks: string;
  /** Steps that the whole width stands for. */
  steps: number;
  /** null: none. */
  selected: number | null;
  /** First and last step in view of the timeline. null: it is not shown. */
  view: readonly [number, number] | null;
  active: boolean;
  height?: number;
  /** What a step says, where it is held. */
  titleOf(seq: number): string;
  onPick(seq: number): void;
}

/** The horizon as minimap and slider: click, drag or arrow keys pick a step. */
export function HorizonScrubber(props: ScrubberProps) {
  const { marks, steps, selected, view, active, height = 76, titleOf, onPick } = props;
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const width = useWidth(element);
  const frame = useMemo(() => frameFor(width, height, steps, 12), [width, height, steps]);
  const count = marks.length;
  const words = (seq: number) => `${seq} · ${MARKS[letterOf(marks[seq - 1])].name}`;

  const under = (event: PointerEvent) =>
    seqAt(event.clientX - event.currentTarget.getBoundingClientRect().left, frame, count);
  const keys = (event: KeyboardEvent) => {
    const from = selected ?? count;
    const big = Math.max(1, Math.round(count / 10));
    const to: Record<string, number> = {
      ArrowLeft: from - 1,
      ArrowRight: from + 1,
      PageDown: from - big,
      PageUp: from + big,
      Home: 1,
      End: count,
    };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onPick(Math.min(count, Math.max(1, next)));
  };
  const slot = width / Math.max(1, frame.steps);

  return (
    <div
      className="horizon live"
      ref={setElement}
      style={{ height }}
      role="slider"
      tabIndex={0}
      aria-label="Steps of the run"
      aria-valuemin={Math.min(1, count)}
      aria-valuemax={count}
      aria-valuenow={selected ?? count}
      aria-valuetext={count ? `${words(selected ?? count)}, of ${count}` : "no steps yet"}
      onKeyDown={keys}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        if (count) onPick(under(event));
      }}
      onPointerMove={(event) => {
        if (!count) return;
        setPointed(under(event));
        if (event.buttons & 1) onPick(under(event));
      }}
      onPointerLeave={() => setPointed(null)}
    >
      {width > 0 && (
        <>
          <svg width={width} height={height} aria-hidden="true" style={{ position: "absolute", inset: 0 }}>
            {view && count > 0 && (
              <rect
                x={xOf(view[0], frame) - 2}
                width={Math.max(6, xOf(view[1] + 1, frame) - xOf(view[0], frame) + 2)}
                y={0}
                height={height}
                rx={4}
                fill="var(--sunk)"
              />
            )}
            {selected !== null && selected <= count && (
              <Selected x={xOf(selected, frame)} slot={slot} height={height} />
            )}
          </svg>
          <span style={{ position: "relative", display: "block" }}>
            <HorizonLine marks={marks} frame={frame} label={null} />
          </span>
          <svg width={width} height={height} aria-hidden="true" style={{ position: "absolute", inset: 0 }}>
            {active && count > 0 && <NowMark x={xOf(count + 1, frame)} height={height} />}
          </svg>
        </>
      )}
      {pointed !== null && (
        <span
          className="horizon-tip"
          style={
            xOf(pointed, frame) > width / 2
              ? { right: width - xOf(pointed, frame) - 8 }
              : { left: xOf(pointed, frame) - 8 }
          }
        >
          <span className="num quiet">{words(pointed)}</span> <b>{titleOf(pointed)}</b>
        </span>
      )}
    </div>
  );
}

/** The selected step: a band behind its mark and a pointer from below, so that the mark keeps its colour. */
function Selected({ x, slot, height }: { x: number; slot: number; height: number }) {
  const middle = x + Math.min(3, slot * 0.62) / 2;
  return (
    <>
      <rect x={middle - 4} width={8} y={0} height={height} rx={3} fill="var(--ink)" opacity={0.14} />
      <path d={`M${middle - 5} ${height + 5}L${middle} ${height - 1}l5 6z`} fill="var(--ink)" />
    </>
  );
}

/** Where the run stands: an upright at the edge of what has happened. */
function NowMark({ x, height }: { x: number; height: number }) {
  return (
    <>
      <path d={`M${x.toFixed(1)} 2V${height - 2}`} stroke="var(--sea)" strokeWidth="2" />
      <circle cx={x} cy={2.5} r={2.5} fill="var(--sea)" />
    </>
  );
}
