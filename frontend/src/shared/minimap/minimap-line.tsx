import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";
import { useWidth } from "../ui/hooks";
import { baselineY, createFrame, type Frame, markPaths } from "./geometry";
import { MARK_STYLES } from "./marks";
import "./minimap.css";

interface MinimapLineProps {
  marks: string;
  frame: Frame;
  /** Description of the whole line. `null` means that it is described elsewhere. */
  label: string | null;
}

/** The marks on their line. */
export function MinimapLine({ marks, frame, label }: MinimapLineProps) {
  const markPathList = useMemo(() => [...markPaths(marks, frame)], [marks, frame]);
  const line = baselineY(frame.height);
  const labelProps = label === null ? { "aria-hidden": true as const } : { role: "img", "aria-label": label };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: named by its label, or described elsewhere
    <svg width={frame.width} height={frame.height} viewBox={`0 0 ${frame.width} ${frame.height}`} {...labelProps}>
      <path d={`M0 ${line + 0.5}H${frame.width}`} stroke="var(--line)" fill="none" />
      {markPathList.map(([mark, data]) => (
        <path key={mark} d={data} fill={`var(${MARK_STYLES[mark].color})`} />
      ))}
    </svg>
  );
}

interface MinimapThumbnailProps {
  marks: string;
  /** Number of marks in the full width. */
  steps: number;
  height?: number;
  /** Number of steps, if `marks` are only some of them. */
  count?: number;
}

/** The step minimap of a run in a list. */
export function MinimapThumbnail({ marks, steps, height = 34, count = marks.length }: MinimapThumbnailProps) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const width = useWidth(element);
  const frame = useMemo(() => createFrame(width, height, steps, 6), [width, height, steps]);
  return (
    <span className="minimap" ref={setElement} style={{ height }}>
      {width > 0 && <MinimapLine marks={marks} frame={frame} label={t`${count} steps`} />}
    </span>
  );
}
