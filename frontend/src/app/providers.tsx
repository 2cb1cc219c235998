import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { isRetryable, ProblemError } from "@/shared/api/client";
import { sessionQuery } from "@/shared/api/session";
import type { StreamHub } from "@/shared/stream/hub";
import { StreamProvider } from "@/shared/stream/stream-context";
import { HotkeyProvider } from "@/shared/ui/hotkeys";
import { ToastProvider } from "@/shared/ui/toast";

const RETRIES = 3;

const shouldRetry = (failures: number, error: unknown) => failures < RETRIES && isRetryable(error);

/** Retry only retryable errors, and show the sign-in view when the session has ended. */
export function createQueryClient(): QueryClient {
  const onError = (error: unknown) => {
    const expired = error instanceof ProblemError && error.status === 401;
    if (expired && client.getQueryData(sessionQuery.queryKey)) client.resetQueries({ queryKey: sessionQuery.queryKey });
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // The server may run on this machine, where a browser without a network can still reach it.
      queries: { retry: shouldRetry, staleTime: 2_000, networkMode: "always" },
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
  const queries = useMemo(() => client ?? createQueryClient(), [client]);
  return (
    <I18nProvider i18n={i18n}>
      <QueryClientProvider client={queries}>
        <StreamProvider hub={hub}>
          <ToastProvider>
            <HotkeyProvider>{children}</HotkeyProvider>
          </ToastProvider>
        </StreamProvider>
      </QueryClientProvider>
    </I18nProvider>
  );
}
