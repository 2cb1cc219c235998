import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { runTestSearch, type SearchEngine, type SearchSetup, searchSetupQuery } from "@/shared/api/settings";
import { formatDecimal } from "@/shared/format/numbers";
import { offerText } from "@/shared/texts/offer-texts";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { Field, Input } from "@/shared/ui/field";
import { Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./installation.module.css";

/** The search engines that runs with web access use, why, and what each needs. */
export function SearchSection() {
  const setup = useQuery(searchSetupQuery);
  return (
    <div className={styles.stack}>
      <Loaded query={setup} label={t`the search engines`}>
        {(data) => <LoadedSetup setup={data} />}
      </Loaded>
    </div>
  );
}

function LoadedSetup({ setup }: { setup: SearchSetup }) {
  const used = setup.engines.filter(({ is_used }) => is_used);
  const others = setup.engines.filter(({ is_used }) => !is_used);
  return (
    <>
      <p className={styles.intro}>{describeChoice(setup.choice)}</p>
      {setup.problem && (
        <div role="alert">
          <p className={styles.problem} dir="auto">
            {setup.problem}
          </p>
          <p className={styles.remedy} dir="auto">
            {setup.remedy}
          </p>
        </div>
      )}
      {used.length > 0 && (
        <Panel title={t`Used by runs`} level={3}>
          <EngineList engines={used} />
        </Panel>
      )}
      {others.length > 0 && (
        <Panel title={t`Not used`} level={3}>
          <EngineList engines={others} />
        </Panel>
      )}
      <p className={styles.note}>
        <Trans>
          Set variables in the environment of the API and the workers, or in <code>.env</code> on the machine, and
          restart Offing. <code>OFFING_SEARCH_ENGINES</code> names the engines to use, such as{" "}
          <code>brave,openalex</code>. Values are never shown here.
        </Trans>
      </p>
    </>
  );
}

function describeChoice(choice: SearchSetup["choice"]): string {
  if (choice === "named") return t`Runs with web access use the engines that OFFING_SEARCH_ENGINES names.`;
  if (choice === "configured")
    return t`Runs with web access use the engines whose required variables are set. OFFING_SEARCH_ENGINES names none.`;
  return t`No search engine is configured, so runs with web access use public archives that need nothing. To search the whole web, set up one of the others.`;
}

function EngineList({ engines }: { engines: readonly SearchEngine[] }) {
  return (
    <ul className={styles.list}>
      {engines.map((engine) => (
        <EngineRow key={engine.name} engine={engine} />
      ))}
    </ul>
  );
}

function EngineRow({ engine }: { engine: SearchEngine }) {
  const [testing, setTesting] = useState(false);
  const { name, variables, is_ready, texts } = engine;
  const covers = offerText(engine.covers, texts.covers);
  const cost = offerText(engine.cost, texts.cost);
  return (
    <li className={styles.row}>
      <div className={styles.head}>
        <span className={styles.name}>{name}</span>
        {variables.map((variable) => (
          <VariableState key={variable.name} variable={variable} />
        ))}
        <Button
          small
          aria-expanded={testing}
          aria-label={t`Test ${name}`}
          disabled={!is_ready}
          onClick={() => setTesting(!testing)}
        >
          <Trans>Test</Trans>
        </Button>
      </div>
      {covers && <span>{covers}</span>}
      {cost && (
        <span className={styles.note}>
          <Trans>Cost: {cost}</Trans>
        </span>
      )}
      {testing && <EngineTest name={name} />}
    </li>
  );
}

function VariableState({ variable: { name, is_set, is_optional } }: { variable: SearchEngine["variables"][number] }) {
  const tone = is_set ? "moss" : is_optional ? "neutral" : "sun";
  return (
    <Badge tone={tone}>
      <code>{name}</code> {is_set ? t`set` : is_optional ? t`optional` : t`not set`}
    </Badge>
  );
}

function EngineTest({ name }: { name: string }) {
  const [query, setQuery] = useState(t`coral reef`);
  const test = useMutation({ mutationFn: () => runTestSearch(name, query.trim()) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (query.trim()) test.mutate();
  };
  return (
    <div className={styles.stack}>
      <form className={styles.inline} onSubmit={submit}>
        <Field label={t`Test search`}>
          {(control) => (
            <Input
              {...control}
              dir="auto"
              maxLength={200}
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" disabled={!query.trim() || test.isPending}>
          {test.isPending ? t`Searching…` : t`Search`}
        </Button>
      </form>
      <span className={styles.note}>
        <Trans>The words are sent to {name}.</Trans>
      </span>
      <ProblemNote error={test.error} />
      {test.data && <TestResult result={test.data} />}
    </div>
  );
}

function TestResult({ result }: { result: Awaited<ReturnType<typeof runTestSearch>> }) {
  const seconds = formatDecimal(result.seconds, 1);
  return (
    <div role="status">
      {result.problem ? (
        <>
          <p className={styles.problem}>
            <Trans>Failed after {seconds} s.</Trans> <span dir="auto">{result.problem}</span>
          </p>
          <p className={styles.remedy}>{result.remedy}</p>
        </>
      ) : (
        <p>
          <Trans>
            <Plural value={result.hits.length} one="# result" other="# results" /> in {seconds} s
          </Trans>
        </p>
      )}
      <ol>
        {result.hits.map(({ title, url }) => (
          <li key={url} dir="auto">
            {title || url} <span className={styles.note}>{hostOf(url)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Return the host of an address of a search engine, or the address itself if it is none. Pure. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
