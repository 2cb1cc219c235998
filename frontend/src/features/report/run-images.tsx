import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { runFilesQuery } from "@/shared/api/files";
import { Failure } from "@/shared/ui/loaded";
import { RunFiles } from "@/shared/ui/run-files";

/** Images that the code of the run has written. They are not evidence, so they are shown below the cited text. */
export function RunImages({ runId }: { runId: string }) {
  const files = useQuery(runFilesQuery(runId));
  if (!files.data) return <Failure query={files} />;
  const images = files.data.items.filter((file) => file.is_image);
  if (images.length === 0) return null;
  return (
    <section aria-label={t`Images`}>
      <h3>
        <Trans>Images</Trans>
      </h3>
      <RunFiles runId={runId} files={images} />
    </section>
  );
}
