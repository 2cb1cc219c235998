import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { suspectAway, type Trouble, useAway } from "@/shared/api/reach";
import { since, span } from "@/shared/format/numbers";
import { useStreamState } from "@/shared/stream/stream-context";
import { useNow } from "@/shared/ui/hooks";

const TITLE: Record<Trouble, string> = {
  unreachable: "The server cannot be reached.",
  unready: "The server answers, but its database does not.",
};

/** Says that the server is away while it is, and asks for everything in view again when it is back. */
export function AwayBanner() {
  const away = useAway();
  const client = useQueryClient();
  const stream = useStreamState();
  const now = useNow(1_000, away !== null);
  const was = useRef(false);

  useEffect(() => {
    if (stream === "lost") suspectAway();
  }, [stream]);
  useEffect(() => {
    if (was.current && away === null) void client.invalidateQueries();
    was.current = away !== null;
  }, [away, client]);

  if (away === null) return null;
  const seconds = since(new Date(away.since).toISOString(), now);
  return (
    <div className="away" role="alert">
      <b>{TITLE[away.trouble]}</b> Runs continue without this page, and what you have typed is kept. The page reconnects
      on its own.
      {seconds >= 3 && <span className="num"> {span(seconds)}</span>}
    </div>
  );
}
