/** What this installation offers: graphs, engines and search engines. What other packages register is shown unchanged. */

import { t } from "@lingui/core/macro";
import type { Schemas } from "../api/client";
import type { Graph } from "../api/installation";
import { type CodedText, sayText, type TextsByCode } from "./coded-text";

export const OFFER_TEXTS: TextsByCode<Schemas["OfferTextCode"]> = {
  graph_agentflow: () => t`Analyzes the question, then plans, acts and verifies in turns, and writes a cited report.`,
  graph_hiper: () =>
    t`One agent that keeps or switches a subgoal and takes one action per turn, and writes a cited report.`,
  graph_iterresearch: () =>
    t`One agent that rewrites its report in each round and sees only that report, for any number of rounds.`,
  title_memact: () => t`Memory as action`,
  graph_memact: () =>
    t`One agent that works with tools and edits its own context: it removes records and keeps notes about them.`,
  title_research_team: () => t`Research team`,
  graph_research_team: () =>
    t`Splits the question into parts, starts a run for each, combines the findings and verifies them.`,
  title_research_team_reviewed: () => t`Research team, plan first`,
  graph_router: () =>
    t`Estimates how much work a question needs: an immediate answer, one search per part, or the full loop.`,
  title_supo: () => t`Summarize when full`,
  graph_supo: () =>
    t`One agent that works with tools and, when its context is full, continues from a summary that it writes.`,
  graph_langgraph: () => t`A LangGraph graph.`,
  engine_extractive: () => t`Quotes and cites your documents. No language model, no key, no cost.`,
  set_key: ({ name }) => t`To use it, set ${name}.`,
  policy_engine_idle: ({ problem }) => t`It runs while there are policies to serve. ${problem}`,
  covers_arxiv: () => t`preprints in physics, mathematics, computer science and related fields`,
  covers_crossref: () => t`publications with a DOI, in all fields`,
  covers_europe_pmc: () => t`life sciences: PubMed, preprints and open full texts`,
  covers_publications: () => t`publications in all fields`,
  covers_wikipedia: () => t`encyclopedia articles`,
  covers_web: () => t`the web`,
  covers_web_meaning: () => t`the web, searched by meaning`,
  covers_google_cse: () => t`the sites of a Google Programmable Search Engine`,
  covers_searxng: () => t`the engines that your SearXNG queries`,
  covers_google: () => t`results of Google Search`,
  cost_free: () => t`free`,
  cost_allowance: () => t`a daily allowance, which is larger with a free key`,
  cost_shared_limit: () => t`free; without a key, all users share one limit`,
  cost_provider: () => t`see the provider`,
  cost_own_server: () => t`your own server`,
};

/** Return a text of a graph, an engine or a search engine in the person's language. */
export function offerText(text: string, coded: CodedText | undefined): string {
  return sayText(OFFER_TEXTS, text, coded);
}

/** Return the name of a graph as people read it. */
export function graphTitle({ name, title, texts }: Pick<Graph, "name" | "title" | "texts">): string {
  return offerText(title, texts.title) || name;
}
