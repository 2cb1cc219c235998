import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { ApiProblem, isPassing } from "@/shared/api/client";
import { sessionQuery } from "@/shared/api/session";
import type { StreamHub } from "@/shared/stream/hub";
import { StreamProvider } from "@/shared/stream/stream-context";
import { HotkeyProvider } from "@/shared/ui/hotkeys";

const RETRIES = 3;

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
      queries: { retry: (failures, error) => failures < RETRIES && isPassing(error), staleTime: 2_000 },
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
