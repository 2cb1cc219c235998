/** The whole app at an address, with the real providers and a stream that the test controls. */

import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { createQueryClient, Providers } from "@/app/providers";
import { createAppRouter } from "@/app/router";
import { StreamHub } from "@/shared/stream/hub";
import { FakeSource } from "./fake-source";

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
  const router = createAppRouter(createMemoryHistory({ initialEntries: [address] }));
  const view = render(
    <Providers client={client} hub={hub}>
      <RouterProvider router={router} />
    </Providers>,
  );
  return { ...view, user: userEvent.setup(), router, sources };
}
