import {
  createRootRoute,
  createRoute,
  createRouter,
  Navigate,
  type RouterHistory,
  useNavigate,
} from "@tanstack/react-router";
import { HomePage } from "@/features/home/home-page";
import { librarySearch, runSearch, signInSearch, trainingSearch } from "./search-params";
import { NotFound, Shell } from "./shell";
import { fetched, ViewProblem } from "./view";

// Each view is fetched when it is first opened; the first one that most people see is here.
const RunPage = fetched("the run", async () => (await import("./run-page")).RunPage);
const LibraryPage = fetched("the library", async () => (await import("@/features/library/library-page")).LibraryPage);
const TrainingPage = fetched(
  "the training view",
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
  component: AlreadySignedIn,
});

/** The shell shows the way in to a browser without a session; one that has a session needs none. */
function AlreadySignedIn() {
  return <Navigate to="/" replace />;
}

function HomeRoute() {
  const navigate = useNavigate();
  return <HomePage onAsked={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id } })} />;
}

function RunRoute() {
  const { runId } = runRoute.useParams();
  const search = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  return (
    <RunPage
      key={runId}
      id={runId}
      search={search}
      onSearch={(part) =>
        navigate({
          search: (was) => ({ ...was, ...part }),
          replace: part.tab === undefined || part.tab === search.tab,
          resetScroll: false,
        })
      }
      onAsked={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
    />
  );
}

function LibraryRoute() {
  const { source, collection } = libraryRoute.useSearch();
  const navigate = libraryRoute.useNavigate();
  return (
    <LibraryPage
      pointed={source ?? null}
      collection={collection ?? null}
      onCollection={(name) => navigate({ search: name === null ? {} : { collection: name } })}
    />
  );
}

function TrainingRoute() {
  const { job, policy, learn } = trainingRoute.useSearch();
  const navigate = trainingRoute.useNavigate();
  return (
    <TrainingPage
      job={job ?? null}
      policy={policy ?? null}
      learn={learn ?? null}
      onJob={(id) => navigate({ search: { job: id } })}
      onPolicy={(name) => navigate({ search: { policy: name } })}
      onLearn={(name) => navigate({ search: { learn: name } })}
    />
  );
}

export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: rootRoute.addChildren([homeRoute, runRoute, libraryRoute, trainingRoute, signInRoute]),
    defaultPreload: false,
    // Of each route by itself: the top bar and the other views go on.
    defaultErrorComponent: ViewProblem,
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
