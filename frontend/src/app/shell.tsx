import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { SettingsMenu } from "@/features/session/settings-menu";
import { SignIn } from "@/features/session/sign-in";
import { ProblemError } from "@/shared/api/client";
import { sessionQuery } from "@/shared/api/session";
import { useLanguage } from "@/shared/language/language";
import { Loaded } from "@/shared/ui/loaded";
import { ServerOutageBanner } from "./server-outage-banner";
import { type Theme, useTheme } from "./theme";
import "./shell.css";

/** The top bar, and below it the current view or the sign-in view. */
export function Shell() {
  useLanguage();
  const session = useQuery(sessionQuery);
  const link = useLocation({ select: ({ search }) => ("link" in search ? search.link : undefined) });
  const isSignedOut = session.error instanceof ProblemError && session.error.status === 401;
  return (
    <div className="shell">
      <a className="skip" href="#view">
        <Trans>Skip to content</Trans>
      </a>
      <TopBar signedIn={session.data !== undefined} />
      <ServerOutageBanner />
      <div className="view" id="view">
        {isSignedOut ? (
          <SignIn problem={link} />
        ) : (
          <Loaded query={session} label={t`your session`} fullPage>
            {() => <Outlet />}
          </Loaded>
        )}
      </div>
    </div>
  );
}

const THEME_NAMES: Record<Theme, MessageDescriptor> = { system: msg`system`, light: msg`light`, dark: msg`dark` };

function TopBar({ signedIn }: { signedIn: boolean }) {
  const [theme, nextTheme] = useTheme();
  const path = useLocation({ select: (location) => location.pathname });
  return (
    <header className="top">
      <Link to="/" className="logo" aria-label={t`Offing, home`}>
        <Logo />
        Offing
      </Link>
      {signedIn && (
        <nav aria-label={t`Main`}>
          <Link to="/" aria-current={path === "/" || path.startsWith("/runs") ? "page" : undefined}>
            <Trans>Runs</Trans>
          </Link>
          <Link to="/library">
            <Trans>Library</Trans>
          </Link>
          <Link to="/training">
            <Trans>Training</Trans>
          </Link>
        </nav>
      )}
      <span className="top-end">
        <button
          type="button"
          className="btn plain"
          aria-label={t`Theme: ${i18n._(THEME_NAMES[theme])}. Change theme`}
          onClick={nextTheme}
        >
          <ThemeIcon theme={theme} />
        </button>
        {signedIn && <SettingsMenu />}
        {signedIn && (
          <Link to="/" className="btn top-new">
            <Trans>New question</Trans>
          </Link>
        )}
      </span>
    </header>
  );
}

function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <path d="M6 10a5 5 0 0 1 10 0z" fill="var(--sun-mark)" />
      <path d="M1 12.5h20M4 16h14M7 19.5h8" stroke="var(--sea)" strokeWidth="1.8" strokeLinecap="round" />
    </svg>
  );
}

function ThemeIcon({ theme }: { theme: string }) {
  const half = { system: "M8 2a6 6 0 0 0 0 12z", light: "", dark: "M8 2a6 6 0 0 0 0 12a6 6 0 0 0 0-12z" }[theme] ?? "";
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeWidth="1.5" />
      <path d={half} fill="currentColor" />
    </svg>
  );
}

export function NotFound() {
  useLanguage();
  return (
    <main className="shell-problem">
      <div className="empty">
        <Trans>
          <b>Page not found</b>
          The link may be incomplete. <Link to="/">All runs</Link>
        </Trans>
      </div>
    </main>
  );
}
