import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { ProblemError } from "@/shared/api/client";
import { sessionQuery } from "@/shared/api/session";
import { useLanguage } from "@/shared/language/language";
import { Link, useNavigate, useSearch } from "@/shared/routing/routing";
import { isDialogOpen } from "@/shared/ui/dialog";
import { EmptyState } from "@/shared/ui/empty-state";
import { lazyView } from "@/shared/ui/lazy-view";
import { Loaded } from "@/shared/ui/loaded";
import { Navigation } from "./navigation";
import { signInSearch } from "./search-params";
import { ServerOutageBanner } from "./server-outage-banner";
import "./shell.css";

const SignIn = lazyView(msg`the sign-in view`, async () => (await import("@/features/session/sign-in")).SignIn);
const CommandPalette = lazyView(msg`the palette`, async () => (await import("./command-palette")).CommandPalette);

/** The navigation, and beside it the current view or the sign-in view. `children` are the view of the route. */
export function Shell({ children }: { children: ReactNode }) {
  useLanguage();
  const session = useQuery(sessionQuery);
  const { link } = useSearch(signInSearch);
  const isSignedOut = session.error instanceof ProblemError && session.error.status === 401;
  const signedIn = session.data !== undefined;
  const palette = usePalette(signedIn);
  return (
    <div className="shell">
      <a className="skip" href="#view">
        <Trans>Skip to content</Trans>
      </a>
      <Navigation signedIn={signedIn} onFind={palette.open} />
      <ServerOutageBanner />
      <div className="view" id="view" tabIndex={-1}>
        {isSignedOut ? (
          <SignIn problem={link} />
        ) : (
          <Loaded query={session} label={t`your session`} fullPage>
            {() => children}
          </Loaded>
        )}
      </div>
      {palette.element}
    </div>
  );
}

/** The command palette, which Ctrl+K or Cmd+K opens and closes. Its code is loaded when it is first opened. */
function usePalette(isEnabled: boolean): { open(): void; element: ReactNode } {
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  useEffect(() => {
    if (!isEnabled) return;
    const handleKeyDown = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || event.shiftKey || event.altKey || !(event.ctrlKey || event.metaKey))
        return;
      event.preventDefault();
      // It closes itself, and never opens above another dialog.
      setOpen((was) => !was && !isDialogOpen());
    };
    document.addEventListener("keydown", handleKeyDown);
    return () => document.removeEventListener("keydown", handleKeyDown);
  }, [isEnabled]);
  const close = () => setOpen(false);
  const element = isOpen && isEnabled && (
    <div className="shell-overlay">
      <CommandPalette
        onClose={close}
        onScreen={(to) => navigate({ to })}
        onRuns={(search) => navigate({ to: "/runs", search })}
        onCompare={() => navigate({ to: "/runs/compare", search: {} })}
        onSection={(section) => navigate({ to: "/settings/$section", params: { section } })}
        onRun={(runId) => navigate({ to: "/runs/$runId", params: { runId }, search: {} })}
        onAsk={(question) => navigate({ to: "/", search: { ask: question } })}
        onPreset={(preset) => navigate({ to: "/", search: { preset } })}
      />
    </div>
  );
  return { open: () => setOpen(true), element };
}

export function NotFound() {
  useLanguage();
  return (
    <main className="shell-problem">
      <EmptyState title={t`Page not found`}>
        <Trans>
          The link may be incomplete. <Link to="/runs">All runs</Link>
        </Trans>
      </EmptyState>
    </main>
  );
}
