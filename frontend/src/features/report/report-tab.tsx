import { msg, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Report, reportVersionQuery } from "@/shared/api/reports";
import { hasEnded, type Run, type RunDetail, type RunRequest } from "@/shared/api/runs";
import { formatDateTime } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import { Button } from "@/shared/ui/button";
import { deleteDraft } from "@/shared/ui/drafts";
import { lazyView } from "@/shared/ui/lazy-view";
import { Loaded } from "@/shared/ui/loaded";
import { Tabs, tabPanelProps } from "@/shared/ui/tabs";
import { AskDialog, type Asked } from "./ask-dialog";
import { Contents } from "./contents";
import { draftKey, readEditDraft } from "./edit-draft";
import { ExportMenu } from "./export-menu";
import { describeAuthor } from "./people";
import type { ReportPart } from "./report-parts";
import styles from "./report-tab.module.css";
import { type AskAbout, ReportView } from "./report-view";
import { SelectionActions } from "./selection-actions";
import { jumpToSentence, listClaims } from "./sentence-marks";

const ReportEditor = lazyView(msg`the editor`, async () => (await import("./report-tools")).ReportEditor);
const ClaimsView = lazyView(msg`the claims`, async () => (await import("./report-tools")).ClaimsView);
const VersionsPanel = lazyView(msg`the versions`, async () => (await import("./report-tools")).VersionsPanel);

interface ReportTabProps {
  run: RunDetail;
  /** The latest version. */
  latest: Report;
  /** Version that is shown. `undefined` means the latest. */
  version: number | undefined;
  /** `undefined` means the text. */
  part: ReportPart | undefined;
  pinned: readonly number[];
  onPin(number: number): void;
  remedy: ReactNode;
  onShow(change: { part?: ReportPart | undefined; version?: number | undefined }): void;
  /** Builds the request of a follow-up in the thread of the run. */
  buildFollowUp(question: string, kind: Asked["kind"]): Promise<RunRequest>;
  onRunCreated(run: Run): void;
}

/** A report to read, with its claims, its versions and an editor. */
export function ReportTab(props: ReportTabProps) {
  const { run, latest, version, onShow, part } = props;
  const isLatest = version === undefined || version === latest.version;
  const older = useQuery({ ...reportVersionQuery(run.id, version ?? latest.version), enabled: !isLatest });
  if (part === "edit" && hasEnded(run)) return <Editor runId={run.id} latest={latest} onShow={onShow} />;
  if (isLatest) return <ShownReport {...props} report={latest} />;
  return (
    <Loaded query={older} label={t`version ${version}`}>
      {(report) => <ShownReport {...props} report={report} />}
    </Loaded>
  );
}

interface EditorProps {
  runId: string;
  latest: Report;
  onShow: ReportTabProps["onShow"];
}

/** The editor for the version that the unsaved changes belong to, also if there is a newer one by now. */
function Editor({ runId, latest, onShow }: EditorProps) {
  const [draft] = useState(() => readEditDraft(runId));
  const [version] = useState(draft?.base ?? latest.version);
  const base = useQuery(reportVersionQuery(runId, version));
  return (
    <Loaded query={base} label={t`version ${version}`}>
      {(report) => (
        <ReportEditor
          base={report}
          draft={draft}
          onClose={() => onShow({ part: undefined, version: undefined })}
          onReopen={() => onShow({ part: "edit", version: undefined })}
        />
      )}
    </Loaded>
  );
}

function ShownReport(props: ReportTabProps & { report: Report }) {
  const { run, report, part, pinned, onPin, remedy, onShow } = props;
  const [asked, setAsked] = useState<Asked | null>(null);
  const text = useRef<HTMLDivElement>(null);
  const [target, setTarget] = useState<string | null>(null);
  const shown = part === "claims" || part === "versions" ? part : "text";
  useEffect(() => {
    if (shown !== "text" || target === null) return;
    jumpToSentence(target);
    setTarget(null);
  }, [shown, target]);
  const ended = hasEnded(run);
  const onAsk: AskAbout | undefined = ended ? (kind, excerpt) => setAsked({ kind, excerpt }) : undefined;
  const claimCount = listClaims(report).length;
  const conflictCount = report.conflicts.length;
  const tabs = [
    { key: "text", label: t`Text` },
    {
      key: "claims",
      label: (
        <>
          <Trans>Claims</Trans> <span className="num quiet">{claimCount}</span>
        </>
      ),
    },
    {
      key: "versions",
      label: (
        <>
          <Trans>Versions</Trans> <span className="num quiet">{report.latest_version}</span>
        </>
      ),
    },
  ] as const;
  return (
    <div className={styles.tab}>
      <div className={styles.bar}>
        <Tabs
          label={t`Parts of the report`}
          tabs={tabs}
          selected={shown}
          idPrefix="report-"
          onSelect={(key) => onShow({ part: key === "text" ? undefined : key })}
          end={
            <>
              {ended && report.version === report.latest_version && report.version_of === null && (
                <Button small onClick={() => onShow({ part: "edit" })}>
                  <Trans>Edit</Trans>
                </Button>
              )}
              <ExportMenu runId={run.id} version={report.version} small />
            </>
          }
        />
      </div>
      <div {...tabPanelProps("report-", shown)}>
        <DraftNote runId={run.id} onContinue={() => onShow({ part: "edit", version: undefined })} />
        <VersionNote report={report} onShow={onShow} />
        <VersionOfNote report={report} />
        <FollowUpVersionNote report={report} onShow={onShow} />
        {shown === "claims" && (
          <ClaimsView
            report={report}
            pinned={pinned}
            onPin={onPin}
            onJump={(sentenceId: string) => {
              setTarget(sentenceId);
              onShow({ part: undefined });
            }}
          />
        )}
        {shown === "versions" && (
          <VersionsPanel
            key={report.latest_version}
            report={report}
            canRestore={ended}
            onShow={(version: number | undefined) => onShow({ part: undefined, version })}
          />
        )}
        {shown === "text" && (
          <div ref={text}>
            {conflictCount > 0 && (
              <p className={styles.note}>
                <button type="button" className="btn small" onClick={() => onShow({ part: "claims" })}>
                  <Trans>
                    Conflicts between sources: <span className="num">{conflictCount}</span>
                  </Trans>
                </button>
              </p>
            )}
            <Contents report={report} />
            <ReportView report={report} pinned={pinned} onPin={onPin} remedy={remedy} onAsk={onAsk} />
            {onAsk && <SelectionActions area={text} onAsk={onAsk} />}
          </div>
        )}
      </div>
      <AskDialog
        run={run}
        asked={asked}
        onClose={() => setAsked(null)}
        buildFollowUp={props.buildFollowUp}
        onRunCreated={props.onRunCreated}
      />
    </div>
  );
}

/** Says that a reader does not see the latest version. */
function VersionNote({ report, onShow }: { report: Report; onShow: ReportTabProps["onShow"] }) {
  if (report.version === report.latest_version) return null;
  const at = formatDateTime(report.created_at, "short");
  return (
    <div className={`notice sun ${styles.note}`}>
      <b>
        <Trans>
          Version {report.version} of {report.latest_version}
        </Trans>
      </b>
      <p>
        {describeAuthor(report)} · {at}
      </p>
      <p className="notice-acts">
        <Button small onClick={() => onShow({ version: undefined })}>
          <Trans>Show the latest version</Trans>
        </Button>
      </p>
    </div>
  );
}

/** Leads to the report of which this one is a version, if the run has edited an earlier report. */
function VersionOfNote({ report }: { report: Report }) {
  const client = useQueryClient();
  const made = report.version_of;
  // The earlier report may have been read before it got this version.
  useEffect(() => {
    if (made) client.invalidateQueries({ queryKey: ["report", made.run_id] });
  }, [client, made]);
  if (!made) return null;
  const version = made.version === made.latest_version ? undefined : made.version;
  const params = { runId: made.run_id };
  return (
    <div className={`notice ${styles.note}`}>
      <b>
        <Trans>This edit is version {made.version} of the report that it edited.</Trans>
      </b>
      <p>
        <Trans>There it can be read, edited and compared with the versions before it.</Trans>
      </p>
      <p className={styles.acts}>
        <Link to="/runs/$runId" params={params} search={{ tab: "report", version }} className="btn small primary">
          <Trans>Read version {made.version}</Trans>
        </Link>
        <Link to="/runs/$runId" params={params} search={{ tab: "report", part: "versions" }} className="btn small">
          <Trans>Compare the versions</Trans>
        </Link>
      </p>
    </div>
  );
}

/** Says which follow-up made the version that is shown, and leads back to the version before it. */
function FollowUpVersionNote({ report, onShow }: { report: Report; onShow: ReportTabProps["onShow"] }) {
  const { follow_up_run_id: runId, base_version: base } = report;
  if (runId === null || base === null) return null;
  const skipped = report.version - base - 1;
  return (
    <div className={`notice ${styles.note}`}>
      <p dir="auto">
        <Trans>
          A follow-up made version {report.version} from version {base}: “{report.note}”
        </Trans>
      </p>
      {skipped > 0 && (
        <p>
          <Plural
            value={skipped}
            one="# version was saved in between, and is not part of it."
            other="# versions were saved in between, and are not part of it."
          />
        </p>
      )}
      <p className={styles.acts}>
        <Button small onClick={() => onShow({ part: "versions" })}>
          <Trans>What changed</Trans>
        </Button>
        <Button small onClick={() => onShow({ version: base })}>
          <Trans>Back to version {base}</Trans>
        </Button>
        <Link to="/runs/$runId" params={{ runId }} className="btn small">
          <Trans>Open the follow-up</Trans>
        </Link>
      </p>
    </div>
  );
}

/** Unsaved changes of an earlier visit. */
function DraftNote({ runId, onContinue }: { runId: string; onContinue(): void }) {
  const [draft, setDraft] = useState(() => readEditDraft(runId));
  if (!draft) return null;
  return (
    <div className={`notice ${styles.note}`}>
      <Trans>This report has changes of yours that are not saved.</Trans>
      <p className="notice-acts">
        <Button small onClick={onContinue}>
          <Trans>Continue editing</Trans>
        </Button>
        <Button
          small
          onClick={() => {
            deleteDraft(draftKey(runId));
            setDraft(null);
          }}
        >
          <Trans>Discard</Trans>
        </Button>
      </p>
    </div>
  );
}
