import { msg } from "@lingui/core/macro";
import {
  createRootRoute,
  createRoute,
  createRouter,
  Navigate,
  type RouterHistory,
  useNavigate,
} from "@tanstack/react-router";
import { HomePage } from "@/features/home/home-page";
import { useLanguage } from "@/shared/language/language";
import { librarySearch, runSearch, signInSearch, trainingSearch } from "./search-params";
import { NotFound, Shell } from "./shell";
import { lazyView, ViewError } from "./view";

// The code of each view is loaded when the view is first opened. The home page, which most people see first, is
// included.
const RunPage = lazyView(msg`the run`, async () => (await import("./run-page")).RunPage);
const LibraryPage = lazyView(
  msg`the library`,
  async () => (await import("@/features/library/library-page")).LibraryPage,
);
const TrainingPage = lazyView(
  msg`the training view`,
  async () => (await import("@/features/training/training-page")).TrainingPage,
);

const rootRoute = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const homeRoute = createRoute({ getParentRoute: () => rootRoute, path: "/", component: HomeRoute });
const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId",
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

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: signInSearch,
  component: SignInRoute,
});

/** The shell shows the sign-in view to a browser without a session. A browser with a session goes to the home page. */
function SignInRoute() {
  return <Navigate to="/" replace />;
}

function HomeRoute() {
  useLanguage();
  const navigate = useNavigate();
  return <HomePage onRunCreated={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id } })} />;
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
  const { source, collection } = libraryRoute.useSearch();
  const navigate = libraryRoute.useNavigate();
  return (
    <LibraryPage
      highlighted={source ?? null}
      collection={collection ?? null}
      onCollection={(name) => navigate({ search: name === null ? {} : { collection: name } })}
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

export function createAppRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: rootRoute.addChildren([homeRoute, runRoute, libraryRoute, trainingRoute, signInRoute]),
    defaultPreload: false,
    // Each route has its own error boundary, so the top bar and the other views keep working.
    defaultErrorComponent: ViewError,
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
