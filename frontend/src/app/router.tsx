/**
 * The addresses of the web UI. Routes are nested: the root has the navigation, and `/runs` the list with each run below
 * it. Each route validates the parameters of its address and has its own error boundary.
 */

import { msg, t } from "@lingui/core/macro";
import {
  createRootRoute,
  createRoute,
  createRouter,
  Navigate,
  Outlet,
  type RouterHistory,
  useLocation,
  useNavigate,
} from "@tanstack/react-router";
import { useLanguage } from "@/shared/language/language";
import { lazyView } from "@/shared/ui/lazy-view";
import { useToast } from "@/shared/ui/toast";
import {
  compareSearch,
  homeSearch,
  librarySearch,
  runListSearch,
  runSearch,
  signInSearch,
  trainingSearch,
} from "./search-params";
import { NotFound, Shell } from "./shell";
import { ViewError } from "./view";

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

const rootRoute = createRootRoute({ component: Root, notFoundComponent: NotFound });

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  validateSearch: homeSearch,
  component: HomeRoute,
});
const runsRoute = createRoute({ getParentRoute: () => rootRoute, path: "/runs" });
const runListRoute = createRoute({
  getParentRoute: () => runsRoute,
  path: "/",
  validateSearch: runListSearch,
  component: RunListRoute,
});
const compareRoute = createRoute({
  getParentRoute: () => runsRoute,
  path: "compare",
  validateSearch: compareSearch,
  component: CompareRoute,
});
const runRoute = createRoute({
  getParentRoute: () => runsRoute,
  path: "$runId",
  validateSearch: runSearch,
  component: RunRoute,
});
const libraryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/library",
  validateSearch: librarySearch,
  component: LibraryRoute,
});
const trainingRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/training",
  validateSearch: trainingSearch,
  component: TrainingRoute,
});
const settingsRoute = createRoute({ getParentRoute: () => rootRoute, path: "/settings" });
const settingsListRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "/",
  component: () => <SettingsPage section={null} />,
});
const settingsSectionRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: "$section",
  component: SettingsSectionRoute,
});
const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: signInSearch,
  component: SignInRoute,
});
const sharedRoute = createRoute({ getParentRoute: () => rootRoute, path: "/shared/$token", component: SharedRoute });
const storiesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/stories",
  component: () => <StoriesPage />,
});

/**
 * Stories need no server, and readers of a shared report have no session. Both are shown without the navigation, which
 * asks the server for the session.
 */
function Root() {
  const isBare = useLocation({
    select: ({ pathname }) => (HAS_STORIES && pathname === "/stories") || pathname.startsWith("/shared/"),
  });
  return isBare ? <Outlet /> : <Shell />;
}

function SharedRoute() {
  const { token } = sharedRoute.useParams();
  return <SharedPage key={token} token={token} />;
}

/** The shell shows the sign-in view to a browser without a session. A browser with a session goes to the home page. */
function SignInRoute() {
  return <Navigate to="/" replace />;
}

function HomeRoute() {
  useLanguage();
  const { ask, q, preset } = homeRoute.useSearch();
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
  const search = runListRoute.useSearch();
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
  const { a, b } = compareRoute.useSearch();
  return <ComparePage first={a ?? null} second={b ?? null} />;
}

function RunRoute() {
  useLanguage();
  const { runId } = runRoute.useParams();
  const search = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  return (
    <RunPage
      key={runId}
      runId={runId}
      search={search}
      onSearch={(part) =>
        navigate({
          search: (was) => ({ ...was, ...part }),
          replace: part.tab === undefined || part.tab === search.tab,
          resetScroll: false,
        })
      }
      onRunCreated={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
    />
  );
}

function LibraryRoute() {
  useLanguage();
  const { source, collection, q } = libraryRoute.useSearch();
  const navigate = libraryRoute.useNavigate();
  return (
    <LibraryPage
      highlighted={source ?? null}
      collection={collection ?? null}
      onCollection={(name) => navigate({ search: { ...(name !== null && { collection: name }), ...(q && { q }) } })}
      search={q ?? ""}
      onSearch={(text) =>
        navigate({ search: ({ q: _, ...rest }) => ({ ...rest, ...(text && { q: text }) }), replace: true })
      }
    />
  );
}

function TrainingRoute() {
  useLanguage();
  const { job, policy, distill } = trainingRoute.useSearch();
  const navigate = trainingRoute.useNavigate();
  return (
    <TrainingPage
      job={job ?? null}
      policy={policy ?? null}
      distill={distill ?? null}
      onJob={(id) => navigate({ search: { job: id } })}
      onPolicy={(name) => navigate({ search: { policy: name } })}
      onDistill={(name) => navigate({ search: { distill: name } })}
    />
  );
}

function SettingsSectionRoute() {
  useLanguage();
  return <SettingsPage section={settingsSectionRoute.useParams().section} />;
}

export function createAppRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: rootRoute.addChildren([
      homeRoute,
      runsRoute.addChildren([runListRoute, compareRoute, runRoute]),
      libraryRoute,
      trainingRoute,
      settingsRoute.addChildren([settingsListRoute, settingsSectionRoute]),
      signInRoute,
      sharedRoute,
      ...(HAS_STORIES ? [storiesRoute] : []),
    ]),
    defaultPreload: false,
    // Each route has its own error boundary, so the navigation and the other views keep working.
    defaultErrorComponent: ViewError,
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
