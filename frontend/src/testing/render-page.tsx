/** The whole app at an address, with the real providers and a stream that the test controls. */

import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { createQueryClient, Providers } from "@/app/providers";
import { Pages } from "@/app/router";
import { parseSearch } from "@/shared/routing/address";
import { StreamHub } from "@/shared/stream/hub";
import { FakeSource } from "./fake-source";

/** Where the page is, and the way back. */
const ROUTER = {
  get state() {
    return { location: { pathname: location.pathname, search: parseSearch(location.search) } };
  },
  history: window.history,
};

export function renderPage(address: string, client = createQueryClient()) {
  const sources: FakeSource[] = [];
  const hub = new StreamHub({
    tab: "this",
    channel: null,
    lead: null,
    open: (url) => {
      const source = new FakeSource(url);
      sources.push(source);
      return source.asEventSource();
    },
    after: () => () => undefined,
    now: () => 0,
  });
  window.history.pushState(null, "", address);
  const view = render(
    <Providers client={client} hub={hub}>
      <Pages />
    </Providers>,
  );
  return { ...view, user: userEvent.setup(), router: ROUTER, sources };
}
