import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { type KeyboardEvent, type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useWidth } from "../ui/hooks";
import { createFrame, type Frame, seqAt, stepX } from "./geometry";
import { MARK_STYLES, parseMark } from "./marks";
import { MinimapLine } from "./minimap-line";
import type { StepRange, VisibleSteps } from "./visible-steps";

interface StepMinimapProps {
  marks: string;
  /** Number of steps in the full width. */
  steps: number;
  /** `null` means none. */
  selected: number | null;
  /** The steps that the timeline shows. */
  view: VisibleSteps;
  active: boolean;
  height?: number;
  /** Return the title of a step if the step is loaded. */
  titleOf(seq: number): string;
  onPick(seq: number): void;
}

/** The step minimap with a slider: click, drag or use the arrow keys to select a step. */
export function StepMinimap(props: StepMinimapProps) {
  const { marks, steps, selected, view, active, height = 76, titleOf, onPick } = props;
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [hovered, setPointed] = useState<number | null>(null);
  const width = useWidth(element);
  const frame = useMemo(() => createFrame(width, height, steps, 12), [width, height, steps]);
  const count = marks.length;
  const describeStep = (seq: number) => `${seq} · ${i18n._(MARK_STYLES[parseMark(marks[seq - 1])].name)}`;

  const seqUnder = (event: PointerEvent) =>
    seqAt(event.clientX - event.currentTarget.getBoundingClientRect().left, frame, count);
  const handleKeyDown = (event: KeyboardEvent) => {
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
      className="minimap interactive"
      ref={setElement}
      style={{ height }}
      role="slider"
      tabIndex={0}
      aria-label={t`Steps of the run`}
      aria-valuemin={Math.min(1, count)}
      aria-valuemax={count}
      aria-valuenow={selected ?? count}
      aria-valuetext={count ? t`${describeStep(selected ?? count)}, of ${count}` : t`no steps yet`}
      onKeyDown={handleKeyDown}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        if (count) onPick(seqUnder(event));
      }}
      onPointerMove={(event) => {
        if (!count) return;
        setPointed(seqUnder(event));
        if (event.buttons & 1) onPick(seqUnder(event));
      }}
      onPointerLeave={() => setPointed(null)}
    >
      {width > 0 && (
        <>
          {count > 0 && <VisibleBand view={view} frame={frame} />}
          <svg width={width} height={height} aria-hidden="true" style={{ position: "absolute", inset: 0 }}>
            {selected !== null && selected <= count && (
              <SelectedStepMarker x={stepX(selected, frame)} slot={slot} height={height} />
            )}
          </svg>
          <span style={{ position: "relative", display: "block" }}>
            <MinimapLine marks={marks} frame={frame} label={null} />
          </span>
          <svg width={width} height={height} aria-hidden="true" style={{ position: "absolute", inset: 0 }}>
            {active && count > 0 && <LastStepMarker x={stepX(count + 1, frame)} height={height} />}
          </svg>
        </>
      )}
      {hovered !== null && (
        <span
          className="minimap-tooltip"
          style={
            stepX(hovered, frame) > width / 2
              ? { right: width - stepX(hovered, frame) - 8 }
              : { left: stepX(hovered, frame) - 8 }
          }
        >
          <span className="num quiet">{describeStep(hovered)}</span> <b dir="auto">{titleOf(hovered)}</b>
        </span>
      )}
    </div>
  );
}

/**
 * A band behind the steps that the timeline shows. Each frame of a scroll moves it. That neither renders a component nor
 * paints the marks.
 */
function VisibleBand({ view, frame }: { view: VisibleSteps; frame: Frame }) {
  const band = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const move = () => band.current && moveBand(band.current, view.get(), frame);
    move();
    return view.subscribe(move);
  }, [view, frame]);
  return <div className="minimap-band" ref={band} />;
}

function moveBand(band: HTMLElement, range: StepRange, frame: Frame): void {
  band.hidden = range === null;
  if (range === null) return;
  const x = stepX(range[0], frame);
  band.style.transform = `translateX(${x - 2}px)`;
  band.style.width = `${Math.max(6, stepX(range[1] + 1, frame) - x + 2)}px`;
}

/** The selected step: a band behind its mark and a pointer below, so that the mark keeps its color. */
function SelectedStepMarker({ x, slot, height }: { x: number; slot: number; height: number }) {
  const middle = x + Math.min(3, slot * 0.62) / 2;
  return (
    <>
      <rect x={middle - 4} width={8} y={0} height={height} rx={3} fill="var(--ink)" opacity={0.14} />
      <path d={`M${middle - 5} ${height + 5}L${middle} ${height - 1}l5 6z`} fill="var(--ink)" />
    </>
  );
}

/** Marks the end of the recorded steps of an active run. */
function LastStepMarker({ x, height }: { x: number; height: number }) {
  return (
    <>
      <path d={`M${x.toFixed(1)} 2V${height - 2}`} stroke="var(--sea)" strokeWidth="2" />
      <circle cx={x} cy={2.5} r={2.5} fill="var(--sea)" />
    </>
  );
}
