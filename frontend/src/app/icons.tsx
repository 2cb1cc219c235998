/** Icons of the navigation: 20 px, one line width, in the color of their text. */

import type { ReactNode } from "react";

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      width="20"
      height="20"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export function AskIcon() {
  return (
    <Icon>
      <path d="M4 4.5h12a1 1 0 0 1 1 1v7.5a1 1 0 0 1-1 1H9l-3.5 3v-3H4a1 1 0 0 1-1-1V5.5a1 1 0 0 1 1-1z" />
    </Icon>
  );
}

/** The line of a run with marks above and below it. */
export function RunsIcon() {
  return (
    <Icon>
      <path d="M2.5 10h15M5 10V6M8 10V3.5M11 10v4M14 10v-3.5M16 10v3" />
    </Icon>
  );
}

export function LibraryIcon() {
  return (
    <Icon>
      <path d="M4 3.5h3v13H4zM9 3.5h3v13H9zM14 4.2l2.8-.6 1 12.4-2.8.5z" />
    </Icon>
  );
}

export function TrainingIcon() {
  return (
    <Icon>
      <path d="M3 16.5h14M3 13.5c3 0 4-6 7-6s3.5-3.5 7-4" />
    </Icon>
  );
}

export function SearchIcon() {
  return (
    <Icon>
      <circle cx="9" cy="9" r="5.5" />
      <path d="M13.2 13.2 17 17" />
    </Icon>
  );
}

export function SettingsIcon() {
  return (
    <Icon>
      <path d="M3 6h8M15 6h2M3 14h2M9 14h8" />
      <circle cx="13" cy="6" r="2" />
      <circle cx="7" cy="14" r="2" />
    </Icon>
  );
}

export function AccountIcon() {
  return (
    <Icon>
      <circle cx="10" cy="7" r="3" />
      <path d="M4 16.5c.6-3 3-4.5 6-4.5s5.4 1.5 6 4.5" />
    </Icon>
  );
}

export function BellIcon() {
  return (
    <Icon>
      <path d="M10 3a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5.5-1.5 5.5h12s-1.5-1.5-1.5-5.5A4.5 4.5 0 0 0 10 3zM8.5 16a1.6 1.6 0 0 0 3 0" />
    </Icon>
  );
}

export function NavigationIcon() {
  return (
    <Icon>
      <path d="M3 6h14M3 10h14M3 14h14" />
    </Icon>
  );
}

/** A full circle is the dark theme, half a circle the system's, and an outline the light theme. */
export function ThemeIcon({ theme }: { theme: string }) {
  const filled = { system: "M10 4a6 6 0 0 0 0 12z", dark: "M10 4a6 6 0 0 0 0 12a6 6 0 0 0 0-12z" }[theme] ?? "";
  return (
    <Icon>
      <circle cx="10" cy="10" r="6" />
      <path d={filled} fill="currentColor" stroke="none" />
    </Icon>
  );
}

export function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 22 22" aria-hidden="true">
      <path d="M6 10a5 5 0 0 1 10 0z" fill="var(--sun-mark)" />
      <path d="M1 12.5h20M4 16h14M7 19.5h8" stroke="var(--sea)" strokeWidth="1.8" strokeLinecap="round" />
    </svg>
  );
}
