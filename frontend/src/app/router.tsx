/** The addresses of the web UI and their views. Each view gets the parameters of its address validated. */

import { msg, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Redirect, Route, Switch } from "wouter";
import { useLanguage } from "@/shared/language/language";
import { parseSearch } from "@/shared/routing/address";
import { Routing, useAddress, useNavigate, useSearch } from "@/shared/routing/routing";
import { lazyView } from "@/shared/ui/lazy-view";
import { useToast } from "@/shared/ui/toast";
import { RouteBoundary } from "./route-boundary";
import {
  type CompareSearch,
  compareSearch,
  type HomeSearch,
  homeSearch,
  type LibrarySearch,
  librarySearch,
  type RunListSearch,
  type RunSearch,
  runListSearch,
  runSearch,
  type SignInSearch,
  type TrainingSearch,
  trainingSearch,
} from "./search-params";
import { NotFound, Shell } from "./shell";

// The code of each view is loaded when the view is first opened. `scripts/check-size.mjs` checks what each of them loads.
export const HomePage = lazyView(msg`the form`, async () => (await import("@/features/home/home-page")).HomePage);
export const RunsPage = lazyView(msg`the runs`, async () => (await import("./runs-page")).RunsPage);
const ComparePage = lazyView(
  msg`the comparison`,
  async () => (await import("@/features/compare/compare-page")).ComparePage,
);
export const RunPage = lazyView(msg`the run`, async () => (await import("./run-page")).RunPage);
const LibraryPage = lazyView(
  msg`the library`,
  async () => (await import("@/features/library/library-page")).LibraryPage,
);
const TrainingPage = lazyView(
  msg`the training view`,
  async () => (await import("@/features/training/training-page")).TrainingPage,
);
const SettingsPage = lazyView(
  msg`the settings`,
  async () => (await import("@/features/settings/settings-page")).SettingsPage,
);

const SharedPage = lazyView(msg`the report`, async () => (await import("@/features/report/shared-page")).SharedPage);

/** Whether this build contains the stories: in development and tests, and in a build with `VITE_STORIES=1`. */
const HAS_STORIES = import.meta.env.DEV || import.meta.env.VITE_STORIES === "1";
const StoriesPage = HAS_STORIES
  ? lazyView(msg`the stories`, async () => (await import("@/stories/stories-page")).StoriesPage)
  : NotFound;

function HomeRoute() {
  useLanguage();
  const { ask, q, preset } = useSearch(homeSearch);
  const navigate = useNavigate();
  const toast = useToast();
  const handleAskFilled = (replaced: string) => {
    navigate({ to: "/", search: {}, replace: true });
    if (!replaced) return;
    const undo = () => navigate({ to: "/", search: { ask: replaced } });
    toast({ text: t`The question in the form was replaced.`, undo });
  };
  return (
    <HomePage
      ask={ask ?? null}
      onAskFilled={handleAskFilled}
      preset={preset ?? null}
      onPresetApplied={() => navigate({ to: "/", search: {}, replace: true })}
      search={q ?? ""}
      onSearch={(text) => navigate({ to: "/", search: text ? { q: text } : {}, replace: true })}
      onRunCreated={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id } })}
    />
  );
}

function RunListRoute() {
  useLanguage();
  const search = useSearch(runListSearch);
  const navigate = useNavigate();
  return (
    <RunsPage
      search={search}
      onSearch={(next, isStep) => navigate({ to: "/runs", search: runListSearch({ ...next }), replace: !isStep })}
      onExample={(question) => navigate({ to: "/", search: { ask: question } })}
    />
  );
}

function CompareRoute() {
  useLanguage();
  const { a, b } = useSearch(compareSearch);
  return <ComparePage first={a ?? null} second={b ?? null} />;
}

function RunRoute({ runId }: { runId: string }) {
  useLanguage();
  const search = useSearch(runSearch);
  const navigate = useNavigate();
  return (
    <RunPage
      key={runId}
      runId={runId}
      search={search}
      onSearch={(part) =>
        navigate({
          to: "/runs/$runId",
          params: { runId },
          // What the address has by now: two changes may come before the view is rendered again.
          search: { ...runSearch(parseSearch(location.search)), ...part },
          replace: part.tab === undefined || part.tab === search.tab,
          keepsScroll: true,
        })
      }
      onRunCreated={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
    />
  );
}

function LibraryRoute() {
  useLanguage();
  const { source, collection, q } = useSearch(librarySearch);
  const navigate = useNavigate();
  return (
    <LibraryPage
      highlighted={source ?? null}
      collection={collection ?? null}
      onCollection={(name) =>
        navigate({ to: "/library", search: { ...(name !== null && { collection: name }), ...(q && { q }) } })
      }
      search={q ?? ""}
      onSearch={(text) =>
        navigate({
          to: "/library",
          search: { ...librarySearch(parseSearch(location.search)), q: text || undefined },
          replace: true,
        })
      }
    />
  );
}

function TrainingRoute() {
  useLanguage();
  const { job, policy, distill } = useSearch(trainingSearch);
  const navigate = useNavigate();
  return (
    <TrainingPage
      job={job ?? null}
      policy={policy ?? null}
      distill={distill ?? null}
      onJob={(id) => navigate({ to: "/training", search: { job: id } })}
      onPolicy={(name) => navigate({ to: "/training", search: { policy: name } })}
      onDistill={(name) => navigate({ to: "/training", search: { distill: name } })}
    />
  );
}

/**
 * The whole web UI at the address of the browser. Stories need no server, and readers of a shared report have no session.
 * Both are shown without the navigation, which asks the server for the session.
 */
export function Pages() {
  return (
    <Routing>
      <Guarded>
        <Switch>
          {HAS_STORIES && (
            <Route path="/stories">
              <StoriesPage />
            </Route>
          )}
          <Route path="/shared/:token">{({ token }) => <SharedPage key={token} token={token} />}</Route>
          <Route>
            <Shell>
              <Guarded>
                <Views />
              </Guarded>
            </Shell>
          </Route>
        </Switch>
      </Guarded>
    </Routing>
  );
}

/** An error of the children is shown in their place, until another address is opened. */
function Guarded({ children }: { children: ReactNode }) {
  return <RouteBoundary address={useAddress()}>{children}</RouteBoundary>;
}

/** The views beside the navigation. The shell shows the sign-in view to a browser without a session. */
function Views() {
  return (
    <Switch>
      <Route path="/">
        <HomeRoute />
      </Route>
      <Route path="/runs">
        <RunListRoute />
      </Route>
      <Route path="/runs/compare">
        <CompareRoute />
      </Route>
      <Route path="/runs/:runId">{({ runId }) => <RunRoute runId={runId} />}</Route>
      <Route path="/library">
        <LibraryRoute />
      </Route>
      <Route path="/training">
        <TrainingRoute />
      </Route>
      <Route path="/settings">
        <SettingsPage section={null} />
      </Route>
      <Route path="/settings/:section">{({ section }) => <SettingsPage section={section} />}</Route>
      <Route path="/sign-in">
        <Redirect to="/" replace />
      </Route>
      <Route>
        <NotFound />
      </Route>
    </Switch>
  );
}

/** Of an address without parameters. */
type NoSearch = Record<string, never>;

declare module "@/shared/routing/address" {
  interface Routes {
    "/": HomeSearch;
    "/runs": RunListSearch;
    "/runs/compare": CompareSearch;
    "/runs/$runId": RunSearch;
    "/library": LibrarySearch;
    "/training": TrainingSearch;
    "/settings": NoSearch;
    "/settings/$section": NoSearch;
    "/sign-in": SignInSearch;
    "/shared/$token": NoSearch;
  }
}
