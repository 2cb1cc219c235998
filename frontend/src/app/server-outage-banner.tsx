import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { checkServer, type ServerProblem, useServerOutage } from "@/shared/api/server-status";
import { formatDuration, secondsSince } from "@/shared/format/numbers";
import { useStreamState } from "@/shared/stream/stream-context";
import { useNow } from "@/shared/ui/hooks";

const TITLES: Record<ServerProblem, MessageDescriptor> = {
  unreachable: msg`The server cannot be reached.`,
  unready: msg`The server responds, but its database does not.`,
};

/** Shows that the server is unavailable, and reloads everything in view when it is available again. */
export function ServerOutageBanner() {
  const outage = useServerOutage();
  const client = useQueryClient();
  const stream = useStreamState();
  const now = useNow(1_000, outage !== null);
  const wasDown = useRef(false);

  useEffect(() => {
    if (stream === "lost") checkServer();
  }, [stream]);
  useEffect(() => {
    if (wasDown.current && outage === null) void client.invalidateQueries();
    wasDown.current = outage !== null;
  }, [outage, client]);

  if (outage === null) return null;
  const seconds = secondsSince(new Date(outage.since).toISOString(), now);
  return (
    <div className="server-outage" role="alert">
      <Trans>
        <b>{i18n._(TITLES[outage.problem])}</b> Runs continue on the server, and your input is saved. This page
        reconnects automatically.
      </Trans>
      {seconds >= 3 && <span className="num"> {formatDuration(seconds)}</span>}
    </div>
  );
}
