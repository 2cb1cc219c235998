import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { ApiProblem, isPassing } from "@/shared/api/client";
import { sessionQuery } from "@/shared/api/session";
import type { StreamHub } from "@/shared/stream/hub";
import { StreamProvider } from "@/shared/stream/stream-context";
import { HotkeyProvider } from "@/shared/ui/hotkeys";

const RETRIES = 3;

const askAgain = (failures: number, error: unknown) => failures < RETRIES && isPassing(error);

/** Asks again only where that can help, and shows the way in when the session has ended. */
export function makeQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    const expired = error instanceof ApiProblem && error.status === 401;
    if (expired && client.getQueryData(sessionQuery.queryKey)) client.resetQueries({ queryKey: sessionQuery.queryKey });
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // The server may be on this machine, so that a browser without a network can reach it all the same.
      queries: { retry: askAgain, staleTime: 2_000, networkMode: "always" },
      mutations: { networkMode: "always" },
    },
  });
  return client;
}

interface ProvidersProps {
  client?: QueryClient;
  hub: StreamHub;
  children: ReactNode;
}

export function Providers({ client, hub, children }: ProvidersProps) {
  const queries = useMemo(() => client ?? makeQueryClient(), [client]);
  return (
    <QueryClientProvider client={queries}>
      <StreamProvider hub={hub}>
        <HotkeyProvider>{children}</HotkeyProvider>
      </StreamProvider>
    </QueryClientProvider>
  );
}
