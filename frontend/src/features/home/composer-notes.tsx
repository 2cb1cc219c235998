import { useQuery } from "@tanstack/react-query";
import { runStatisticsQuery } from "@/shared/api/asking";
import { presetsQuery, providersQuery } from "@/shared/api/providers";
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
  // Other parts of the form load these when they need them, and show their errors. Nothing is requested for a note.
  const providers = useQuery({ ...providersQuery, enabled: false });
  const presets = useQuery({ ...presetsQuery, enabled: false });
  // What could not be refreshed may be outdated, so it is not known.
  const known = {
    providers: providers.error ? undefined : providers.data,
    presets: presets.error ? undefined : presets.data,
  };
  return (
    <>
      {statistics.data && <p>{describeExpectation(expect(statistics.data.items, settings), settings.turns)}</p>}
      <Failure query={statistics} />
      <p>{describeLeaving(settings, defaults, known)}</p>
    </>
  );
}
