/** The whole page at an address, on the real providers, with a stream that a test speaks into. */

import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { makeQueryClient, Providers } from "@/app/providers";
import { makeRouter } from "@/app/router";
import { StreamHub } from "@/shared/stream/hub";
import { FakeSource } from "./fake-source";

export function renderPage(address: string, client = makeQueryClient()) {
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
  const router = makeRouter(createMemoryHistory({ initialEntries: [address] }));
  const view = render(
    <Providers client={client} hub={hub}>
      <RouterProvider router={router} />
    </Providers>,
  );
  return { ...view, user: userEvent.setup(), router, sources };
}
