/** Typed navigation between the views, over the browser's history. */

import { type ComponentPropsWithoutRef, type ReactNode, useCallback, useLayoutEffect, useMemo } from "react";
import { type AroundNavHandler, Router, useLocation, Link as WouterLink } from "wouter";
import { useLocationProperty, useSearch as useSearchText } from "wouter/use-browser-location";
import { parseSearch, type Search, type Target, writeAddress } from "./address";

/** Id of the element that scrolls the view where the window does not. */
const VIEW_ID = "view";

let entryCount = 0;

/** What an entry of the history holds: a key that no other entry of this tab has, also after a reload. */
function createEntryState(): { key: string } {
  entryCount += 1;
  return { key: `${performance.timeOrigin}-${entryCount}` };
}

/** The address that was navigated to and is to be shown from its top, and whether another view was shown before. */
let shownFromTop: { href: string; isOtherView: boolean } | null = null;

/** Back and Forward do not come here: the browser scrolls to where the entry was left. */
const goTo: AroundNavHandler = (navigate, to, options) => {
  const { pathname } = location;
  navigate(to, { ...options, state: createEntryState() });
  shownFromTop = options?.state?.keepsScroll
    ? null
    : { href: location.href, isOtherView: location.pathname !== pathname };
};

function scrollToTop(): void {
  if (shownFromTop?.href === location.href) {
    window.scrollTo(0, 0);
    if (shownFromTop.isOtherView) document.getElementById(VIEW_ID)?.scrollTo(0, 0);
  }
  shownFromTop = null;
}

/** Everything below follows the address of the browser. */
export function Routing({ children }: { children: ReactNode }) {
  const [path] = useLocation();
  const search = useSearchText();
  // biome-ignore lint/correctness/useExhaustiveDependencies: after each address, when its view is rendered.
  useLayoutEffect(scrollToTop, [path, search]);
  useLayoutEffect(() => {
    if (!readEntryKey()) history.replaceState(createEntryState(), "");
  }, []);
  return <Router aroundNav={goTo}>{children}</Router>;
}

const readEntryKey = (): string => history.state?.key ?? "";

/** Return a key of the current entry of the history. Back and Forward come to the same key again, links to a new one. */
export function useEntryKey(): string {
  return useLocationProperty(readEntryKey);
}

/** Return the path of the current address. */
export function usePath(): string {
  return useLocation()[0];
}

/** Return the current address with its parameters, without that of the server. */
export function useAddress(): string {
  return usePath() + useSearchText();
}

/** Return the parameters of the current address as `validate` accepts them. */
export function useSearch<T>(validate: (raw: Search) => T): T {
  const text = useSearchText();
  return useMemo(() => validate(parseSearch(text)), [text, validate]);
}

export interface NavigateOptions {
  /** Whether the address takes the place of the current one, so that Back does not lead to it. */
  replace?: boolean;
  /** Whether the view stays where it is scrolled to. */
  keepsScroll?: boolean;
}

/** Return a function that opens a view. It stays the same. */
export function useNavigate(): (target: Target & NavigateOptions) => void {
  const [, navigate] = useLocation();
  return useCallback(
    ({ replace = false, keepsScroll = false, ...target }) =>
      navigate(writeAddress(target as Target), { replace, state: { keepsScroll } }),
    [navigate],
  );
}

type LinkProps = Target & Omit<ComponentPropsWithoutRef<"a">, "href">;

/** A link to a view. */
export function Link({ to, params, search, ...props }: LinkProps) {
  return <WouterLink {...props} href={writeAddress({ to, params, search } as Target)} />;
}
