import { useMemo, useState } from "react";
import { useWidth } from "../ui/hooks";
import { type Frame, frameFor, paths, waterline } from "./geometry";
import { MARKS } from "./marks";
import "./horizon.css";

interface HorizonLineProps {
  marks: string;
  frame: Frame;
  /** The line's whole picture in words. null: it is described elsewhere. */
  label: string | null;
}

/** The marks on their line, nothing more. */
export function HorizonLine({ marks, frame, label }: HorizonLineProps) {
  const drawn = useMemo(() => [...paths(marks, frame)], [marks, frame]);
  const line = waterline(frame.height);
  const described = label === null ? { "aria-hidden": true as const } : { role: "img", "aria-label": label };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: named by its label, or described elsewhere
    <svg width={frame.width} height={frame.height} viewBox={`0 0 ${frame.width} ${frame.height}`} {...described}>
      <path d={`M0 ${line + 0.5}H${frame.width}`} stroke="var(--line)" fill="none" />
      {drawn.map(([letter, data]) => (
        <path key={letter} d={data} fill={`var(${MARKS[letter].color})`} />
      ))}
    </svg>
  );
}

interface HorizonThumbProps {
  marks: string;
  steps: number;
  height?: number;
}

/** A run's horizon in a list. */
export function HorizonThumb({ marks, steps, height = 34 }: HorizonThumbProps) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const width = useWidth(element);
  const frame = useMemo(() => frameFor(width, height, steps, 6), [width, height, steps]);
  return (
    <span className="horizon" ref={setElement} style={{ height }}>
      {width > 0 && <HorizonLine marks={marks} frame={frame} label={`${marks.length} steps`} />}
    </span>
  );
}
