import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { correctAnswer, setTrainingConsent, trainingSignalsQuery } from "@/shared/api/training-signals";
import { Dialog } from "@/shared/ui/dialog";
import { deleteDraft, useDraft } from "@/shared/ui/drafts";
import { Loaded } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";

const CONSENTS = { default: null, yes: true, no: false } as const;

function isConsent(value: string): value is keyof typeof CONSENTS {
  return value in CONSENTS;
}

/** The right answer of a run, as a person says it, and whether Offing may learn from the run. */
export function LearningDialog({ runId, onClose }: { runId: string; onClose(): void }) {
  const client = useQueryClient();
  const signals = useQuery(trainingSignalsQuery(runId));
  const draft = `answer.${runId}`;
  const [text, setText] = useDraft(draft, "");
  const refresh = () => client.invalidateQueries({ queryKey: ["training-signals", runId] });
  const correct = useMutation({
    mutationFn: () => correctAnswer(runId, text.trim()),
    onSuccess: async () => {
      deleteDraft(draft);
      await refresh();
      onClose();
    },
  });
  const decide = useMutation({
    mutationFn: (isAllowed: boolean | null) => setTrainingConsent(runId, isAllowed),
    onSuccess: refresh,
  });
  return (
    <Dialog open onClose={onClose} title={t`What Offing learns from this run`}>
      <Loaded query={signals} label={t`what was said about this run`}>
        {({ consent }) => (
          <label>
            <Trans>May Offing learn from this run?</Trans>{" "}
            <select
              className="field"
              disabled={decide.isPending}
              value={consent.is_decided ? (consent.may_learn ? "yes" : "no") : "default"}
              onChange={(event) => {
                if (isConsent(event.target.value)) decide.mutate(CONSENTS[event.target.value]);
              }}
            >
              <option value="default">{t`As in the settings`}</option>
              <option value="yes">{t`Yes`}</option>
              <option value="no">{t`No`}</option>
            </select>
          </label>
        )}
      </Loaded>
      <ProblemNote error={decide.error} />
      <textarea
        dir="auto"
        className="field rating-text"
        aria-label={t`The right answer`}
        placeholder={t`The right answer`}
        rows={3}
        maxLength={8000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <ProblemNote error={correct.error} />
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          <Trans>Close</Trans>
        </button>
        <button
          type="button"
          className="btn primary"
          disabled={!text.trim() || correct.isPending}
          onClick={() => correct.mutate()}
        >
          <Trans>Save answer</Trans>
        </button>
      </div>
    </Dialog>
  );
}
