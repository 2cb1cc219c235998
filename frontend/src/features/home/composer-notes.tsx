import { useQuery } from "@tanstack/react-query";
import { runStatisticsQuery } from "@/shared/api/asking";
import { Failure } from "@/shared/ui/loaded";
import { describeExpectation, expect } from "./expectation";
import { type Defaults, describeLeaving } from "./leaving";
import type { Settings } from "./settings";

interface ComposerNotesProps {
  settings: Settings;
  defaults: Defaults;
  /** Whether the person has begun to use the form. Before that, nothing is requested for it. */
  isInUse: boolean;
}

/** What the run is expected to take, and what leaves this machine. */
export function ComposerNotes({ settings, defaults, isInUse }: ComposerNotesProps) {
  const statistics = useQuery({ ...runStatisticsQuery, enabled: isInUse });
  return (
    <>
      {statistics.data && <p>{describeExpectation(expect(statistics.data.items, settings), settings.turns)}</p>}
      <Failure query={statistics} />
      <p>{describeLeaving(settings, defaults)}</p>
    </>
  );
}
