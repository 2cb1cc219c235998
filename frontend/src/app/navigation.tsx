import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { SettingsMenu } from "@/features/session/settings-menu";
import { Link, useNavigate, usePath } from "@/shared/routing/routing";
import { buttonClass, IconButton } from "@/shared/ui/button";
import { Dialog } from "@/shared/ui/dialog";
import { useMediaQuery } from "@/shared/ui/hooks";
import { useHotkeys } from "@/shared/ui/hotkeys";
import { lazyView } from "@/shared/ui/lazy-view";
import { followingTheme, setTheme, THEME_NAMES, useTheme } from "@/shared/ui/theme";
import { AccountIcon, BellIcon, Logo, NavigationIcon, SearchIcon, ThemeIcon } from "./icons";
import { isOnScreen, SCREENS } from "./screens";
import "./navigation.css";

const NotificationBell = lazyView(
  msg`the notifications`,
  async () => (await import("@/features/notifications/notification-bell")).NotificationBell,
  true,
);

interface NavigationProps {
  signedIn: boolean;
  onFind(): void;
}

/** The way to every screen: a column on the left, or on a phone a bar whose button opens it as a sheet. */
export function Navigation(props: NavigationProps) {
  const isNarrow = useMediaQuery("(max-width: 900px)");
  return isNarrow ? <NavigationBar {...props} /> : <NavigationRail {...props} />;
}

function NavigationRail({ signedIn, onFind }: NavigationProps) {
  return (
    <header className="rail">
      <HomeLink />
      {signedIn && <ScreenLinks />}
      <div className="rail-end">
        {signedIn && <FindButton onFind={onFind} />}
        {signedIn && (
          <span className="bell-place">
            <NotificationBell icon={<BellIcon />} className="rail-item" isSheet={false} />
          </span>
        )}
        <ThemeButton />
        {signedIn && <SettingsMenu icon={<AccountIcon />} className="rail-item" />}
      </div>
    </header>
  );
}

function NavigationBar({ signedIn, onFind }: NavigationProps) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <header className="bar">
      <HomeLink />
      {signedIn && (
        <span className="bar-end">
          <IconButton label={t`Find a screen or a run`} onClick={onFind}>
            <SearchIcon />
          </IconButton>
          <span className="bell-place">
            <NotificationBell icon={<BellIcon />} className={buttonClass("plain")} isSheet />
          </span>
          <IconButton label={t`Open the navigation`} aria-expanded={isOpen} onClick={() => setOpen(true)}>
            <NavigationIcon />
          </IconButton>
        </span>
      )}
      <Dialog sheet open={isOpen} onClose={close} title="Offing">
        <div className="bar-sheet">
          <ScreenLinks onOpened={close} />
          <ThemeButton />
          <SettingsMenu icon={<AccountIcon />} className="rail-item" />
        </div>
      </Dialog>
    </header>
  );
}

function HomeLink() {
  return (
    <Link to="/" className="rail-logo" aria-label={t`Offing, home`}>
      <Logo />
      <span>Offing</span>
    </Link>
  );
}

function ScreenLinks({ onOpened }: { onOpened?: () => void }) {
  const path = usePath();
  const navigate = useNavigate();
  useHotkeys(SCREENS.map(({ keys, name, to }) => ({ keys, description: i18n._(name), run: () => navigate({ to }) })));
  return (
    <nav aria-label={t`Main`} className="rail-links">
      {SCREENS.map((screen) => (
        <Link
          key={screen.to}
          to={screen.to}
          className="rail-item"
          aria-current={isOnScreen(screen, path) ? "page" : undefined}
          onClick={onOpened}
        >
          {screen.icon}
          {i18n._(screen.name)}
        </Link>
      ))}
    </nav>
  );
}

function FindButton({ onFind }: { onFind(): void }) {
  return (
    <button type="button" className="rail-item" aria-keyshortcuts="Control+K Meta+K" onClick={onFind}>
      <SearchIcon />
      <Trans>Find</Trans>
    </button>
  );
}

function ThemeButton() {
  const theme = useTheme();
  return (
    <button
      type="button"
      className="rail-item"
      aria-label={t`Theme: ${i18n._(THEME_NAMES[theme])}. Change theme`}
      onClick={() => setTheme(followingTheme(theme))}
    >
      <ThemeIcon theme={theme} />
      <Trans>Theme</Trans>
    </button>
  );
}
