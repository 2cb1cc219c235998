"""What an installation offers, in English, with a code for each text: graphs, engines and search engines."""

from offing.core.coded_text import TextCatalog

OFFER_TEXTS = TextCatalog(
    {
        "graph_agentflow": "Analyzes the question, then plans, acts and verifies in turns, and writes a cited report.",
        "graph_hiper": "One agent that keeps or switches a subgoal and takes one action per turn, and writes a cited "
        "report.",
        "graph_iterresearch": "One agent that rewrites its report in each round and sees only that report, for any "
        "number of rounds.",
        "title_memact": "Memory as action",
        "graph_memact": "One agent that works with tools and edits its own context: it removes records and keeps "
        "notes about them.",
        "title_research_team": "Research team",
        "graph_research_team": "Splits the question into parts, starts a run for each, combines the findings and "
        "verifies them.",
        "title_research_team_reviewed": "Research team, plan first",
        "graph_router": "Estimates how much work a question needs: an immediate answer, one search per part, or the "
        "full loop.",
        "title_supo": "Summarize when full",
        "graph_supo": "One agent that works with tools and, when its context is full, continues from a summary that "
        "it writes.",
        "graph_langgraph": "A LangGraph graph.",
        "engine_extractive": "Quotes and cites your documents. No language model, no key, no cost.",
        "set_key": "To use it, set {name}.",
        "policy_engine_idle": "It runs while there are policies to serve. {problem}",
        "covers_arxiv": "preprints in physics, mathematics, computer science and related fields",
        "covers_crossref": "publications with a DOI, in all fields",
        "covers_europe_pmc": "life sciences: PubMed, preprints and open full texts",
        "covers_publications": "publications in all fields",
        "covers_wikipedia": "encyclopedia articles",
        "covers_web": "the web",
        "covers_web_meaning": "the web, searched by meaning",
        "covers_google_cse": "the sites of a Google Programmable Search Engine",
        "covers_searxng": "the engines that your SearXNG queries",
        "covers_google": "results of Google Search",
        "cost_free": "free",
        "cost_allowance": "a daily allowance, which is larger with a free key",
        "cost_shared_limit": "free; without a key, all users share one limit",
        "cost_provider": "see the provider",
        "cost_own_server": "your own server",
    }
)
"""Texts of what this code base registers. Those of other packages have no code."""
