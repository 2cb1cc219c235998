// Which modules share a file of the build. A view loads a handful of files instead of twenty: each request costs the
// browser and the server more than the few bytes that a view does not need, and one file compresses better than many.
// A module that only one view imports is in the file of that view and in no group. A group never names the module of a
// view, because its file would then only import that of the group.

/** Libraries that every route needs. They change less often than the rest, so browsers keep their file after an update. */
const LIBRARIES =
  /node_modules\/(react|react-dom|scheduler|use-sync-external-store|openapi-fetch|@lingui|wouter|regexparam|@tanstack\/(?!react-virtual|virtual-core)[^/]+)\//;

/** What the entry imports, and shared code that nearly every route needs. */
const APP =
  /src\/(app\/(router|route-boundary|shell|navigation|providers|prefetch|search-params|server-outage-banner|code-update|view|icons|screens)\.|shared\/(routing\/|stream\/(?!use-step-log)|language\/|format\/(numbers|lists)|model-setup\/engine-text|api\/(client|server-status|session|runs)\.|runs\/marked-text|ui\/(button|tooltip|use-overlays|class-names|dialog|drafts|hooks|hotkeys|lazy-view|loaded|problem-note|copy-button|toast|unsaved-input|empty-state|controls)\b))/;

/** What the home page, the list of runs and a run share: rows of runs, their labels and marks, small requests, menus. */
const RUNS =
  /src\/(features\/home\/getting-started|shared\/(format\/run-labels|minimap\/(marks|geometry|minimap-line)|runs\/answerers|ui\/(menu|tabs|toggled)|api\/(threads|installation|library|providers|depth|use-create-run|reports|run-changes|run-views)))\./;

/** What the timeline says about steps and shows of them. */
const STEPS = /src\/shared\/(format\/(step-texts|step-labels)|ui\/run-files|api\/files)\./;

/** The form of a question, which the home page shows at once and its options use. */
const QUESTION = /src\/features\/home\/(validation|request|settings|documents-field)\./;

const ORGANIZE = /src\/shared\/runs\/(run-cache|use-organize|delete-dialog|tags-dialog|run-actions|title-field)\./;

const NOTIFICATIONS =
  /src\/(shared\/(api\/notifications|ui\/browser-notifications)|features\/notifications\/event-texts)\./;

/** A group takes what its modules import, too, unless an earlier group has it. */
export const CHUNKS = [
  ["libraries", LIBRARIES],
  ["app", APP],
  ["virtual", /@tanstack\/(react-virtual|virtual-core)\//],
  ["runs", RUNS],
  ["steps", STEPS],
  ["organize", ORGANIZE],
  ["upload", /src\/shared\/upload\/(upload|use-upload|read-drop|upload-chunk)\./],
  ["question", QUESTION],
  ["notifications", NOTIFICATIONS],
].map(([name, test], at, all) => ({ name, test, priority: all.length - at }));
