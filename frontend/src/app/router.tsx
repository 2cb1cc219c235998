import { createRootRoute, createRoute, createRouter, type RouterHistory, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { HomePage } from "@/features/home/home-page";
import { RunPage } from "./run-page";
import { librarySearch, runSearch, trainingSearch } from "./search-params";
import { NotFound, Shell } from "./shell";

// Not needed for the first view of a question or a run.
const LibraryPage = lazy(async () => ({ default: (await import("@/features/library/library-page")).LibraryPage }));
const TrainingPage = lazy(async () => ({
  default: (await import("@/features/training/training-page")).TrainingPage,
}));

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
      onSearch={(part) => navigate({ search: (was) => ({ ...was, ...part }), replace: true, resetScroll: false })}
      onAsked={(run) => navigate({ to: "/runs/$runId", params: { runId: run.id }, search: {} })}
    />
  );
}

function LibraryRoute() {
  const { source, collection } = libraryRoute.useSearch();
  const navigate = libraryRoute.useNavigate();
  return (
    <Suspense>
      <LibraryPage
        pointed={source ?? null}
        collection={collection ?? null}
        onCollection={(name) => navigate({ search: name === null ? {} : { collection: name }, replace: true })}
      />
    </Suspense>
  );
}

function TrainingRoute() {
  const { job, policy, learn } = trainingRoute.useSearch();
  const navigate = trainingRoute.useNavigate();
  return (
    <Suspense>
      <TrainingPage
        job={job ?? null}
        policy={policy ?? null}
        learn={learn ?? null}
        onJob={(id) => navigate({ search: { job: id } })}
        onPolicy={(name) => navigate({ search: { policy: name } })}
        onLearn={(name) => navigate({ search: { learn: name } })}
      />
    </Suspense>
  );
}

export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: rootRoute.addChildren([homeRoute, runRoute, libraryRoute, trainingRoute]),
    defaultPreload: false,
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
