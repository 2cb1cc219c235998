import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { allSharesQuery, revokeShare, type Share } from "@/shared/api/shares";
import { formatAgo, formatDateTime } from "@/shared/format/numbers";
import { Link } from "@/shared/routing/routing";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { useNow } from "@/shared/ui/hooks";
import { Loaded, LoadMore } from "@/shared/ui/loaded";
import { ProblemNote } from "@/shared/ui/problem-note";
import { type Column, Table } from "@/shared/ui/table";
import styles from "./installation.module.css";

/** Every link under which a report of the tenant can be read without an account, and how to end it. */
export function SharesSection() {
  const client = useQueryClient();
  const now = useNow(60_000);
  const shares = useInfiniteQuery(allSharesQuery);
  const revoke = useMutation({
    mutationFn: revokeShare,
    onSuccess: () => client.invalidateQueries({ queryKey: ["shares"] }),
  });
  const columns: readonly Column<Share>[] = [
    { header: t`Report`, cell: (share) => <SharedReportCell share={share} /> },
    { header: t`Can be read`, cell: (share) => <UntilCell share={share} /> },
    { header: t`Opened`, cell: (share) => <OpenedCell share={share} now={now} /> },
    {
      header: t`Action`,
      cell: (share) =>
        share.state === "open" && (
          <Button
            small
            kind="danger"
            disabled={revoke.isPending && revoke.variables === share.id}
            aria-label={t`Revoke ${shareName(share)}`}
            onClick={() => revoke.mutate(share.id)}
          >
            <Trans>Revoke</Trans>
          </Button>
        ),
    },
  ];
  return (
    <div className={styles.stack}>
      <p className={styles.intro}>
        <Trans>
          Anyone who has one of these links can read its report without an account, until it expires or you revoke it.
          Links that ended are listed for 90 days. To create one, open a report and choose Share.
        </Trans>
      </p>
      <ProblemNote error={revoke.error} />
      <Loaded
        query={shares}
        label={t`the links`}
        empty={({ pages }) => (pages[0]?.items.length === 0 ? <NoLinks /> : null)}
      >
        {({ pages }) => (
          <>
            <Table
              caption={t`Share links`}
              columns={columns}
              rows={pages.flatMap(({ items }) => items)}
              rowKey={(share) => share.id}
            />
            <LoadMore query={shares} text={t`Load more links`} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function NoLinks() {
  return (
    <EmptyState title={t`No report is shared`}>
      <Trans>
        Open a report in <Link to="/runs">your runs</Link> and choose Share. Its links are listed here.
      </Trans>
    </EmptyState>
  );
}

function shareName(share: Share): string {
  return share.label || share.report_title || t`Link of ${formatDateTime(share.created_at, "short")}`;
}

/** What a link shows: a version of a report, with or without the question, and for whom it is. */
function SharedReportCell({ share }: { share: Share }) {
  const { version } = share;
  return (
    <span className={styles.shared}>
      <Link to="/runs/$runId" params={{ runId: share.run_id }} search={{ tab: "report", version }} dir="auto">
        {share.report_title || t`Report without a title`}
      </Link>
      <small className="quiet">
        {share.shows_question ? t`version ${version}, with the question` : t`version ${version}, without the question`}
        {share.label && (
          <>
            {" · "}
            <bdi>{share.label}</bdi>
          </>
        )}
      </small>
    </span>
  );
}

function UntilCell({ share }: { share: Share }) {
  if (share.state === "open") {
    return (
      <span className={styles.shared}>
        <Badge tone="moss">
          <Trans>open</Trans>
        </Badge>
        <small className="quiet">
          <Trans>until {formatDateTime(share.expires_at, "short")}</Trans>
        </small>
      </span>
    );
  }
  return (
    <span className={styles.shared}>
      <Badge>{share.state === "revoked" ? t`revoked` : t`expired`}</Badge>
      <small className="quiet">{formatDateTime(share.revoked_at ?? share.expires_at, "short")}</small>
    </span>
  );
}

function OpenedCell({ share, now }: { share: Share; now: number }) {
  if (!share.last_opened_at) return t`never`;
  return (
    <span className={styles.shared}>
      {share.opened_count}
      <small className="quiet">
        <Trans>last {formatAgo(share.last_opened_at, now)}</Trans>
      </small>
    </span>
  );
}
