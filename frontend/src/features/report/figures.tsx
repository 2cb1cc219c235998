import { useQuery } from "@tanstack/react-query";
import { runFilesQuery } from "@/shared/api/files";
import { Failure } from "@/shared/ui/loaded";
import { RunFiles } from "@/shared/ui/run-files";

/** Pictures that the run's code has drawn. They are no evidence, and so stand below what is cited. */
export function Figures({ run }: { run: string }) {
  const files = useQuery(runFilesQuery(run));
  if (!files.data) return <Failure query={files} />;
  const pictures = files.data.items.filter((file) => file.picture);
  if (pictures.length === 0) return null;
  return (
    <section aria-label="Figures">
      <h3>Figures</h3>
      <RunFiles run={run} files={pictures} />
    </section>
  );
}
