import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { type PointerEvent, useState } from "react";
import { findPoint, linePath, type Point, type Scale, stepAtX, stepX, valueY } from "@/shared/chart/line-geometry";
import { useWidth } from "@/shared/ui/hooks";
import styles from "./cost-view.module.css";

const HEIGHT_PX = 120;

interface UsageChartProps {
  title: string;
  /** Usage up to the end of each turn. Step 1 is the time before the first turn. */
  points: readonly Point[];
  /** Limit of the budget. `null` means none. */
  limit: number | null;
  /** Number of the last turn. */
  turns: number;
  /** Turn under the pointer, from 0. `null` means none. */
  hovered: number | null;
  format(value: number): string;
  onHover(turn: number | null): void;
}

/** A line that grows over the turns, with the limit of the budget as a dashed line where it is near. */
export function UsageChart({ title, points, limit, turns, hovered, format, onHover }: UsageChartProps) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const width = useWidth(element);
  const used = points.at(-1)?.value ?? 0;
  const isLimitShown = limit !== null && limit <= used * 4 && used > 0;
  const scale: Scale = {
    width,
    height: HEIGHT_PX,
    steps: turns + 1,
    low: 0,
    high: isLimitShown ? Math.max(limit, used) : used,
  };
  const step = hovered === null ? null : hovered + 1;
  const shown = findPoint(points, step)?.value ?? 0;
  const text = limit === null ? format(shown) : t`${format(shown)} of ${format(limit)}`;
  const handlePointerMove = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    onHover(stepAtX(event.clientX - box.left, box.width, turns + 1) - 1);
  };
  return (
    <figure className={styles.chart}>
      <figcaption>
        <b>{title}</b> <span className="num">{text}</span>
        {hovered !== null && (
          <span className="quiet num">
            <Trans>up to turn {hovered}</Trans>
          </span>
        )}
      </figcaption>
      <div ref={setElement} onPointerMove={handlePointerMove} onPointerLeave={() => onHover(null)}>
        <svg width={width} height={HEIGHT_PX} role="img" aria-label={`${title}: ${text}`}>
          <path className={styles.base} d={`M0 ${HEIGHT_PX - 0.5}H${width}`} />
          {isLimitShown && <path className={styles.limit} d={`M0 ${valueY(limit, scale)}H${width}`} />}
          {step !== null && <path className={styles.base} d={`M${stepX(step, scale)} 0V${HEIGHT_PX}`} />}
          {used > 0 && <path className={styles.line} d={linePath(points, scale)} />}
        </svg>
      </div>
    </figure>
  );
}
