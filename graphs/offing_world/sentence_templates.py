"""Sentence templates of the documents.

Each relation has several wordings. Only the sentences of `STATEMENTS` state a relation.
"""

STATEMENTS: dict[str, tuple[str, ...]] = {
    "teacher": (
        "{s} was taught by {v}.",
        "{v} was the teacher of {s}.",
        "As a young apprentice {s} learned the craft from {v}, who remained the only teacher.",
    ),
    "home": ("{s} lives in {v}.", "The home of {s} is {v}.", "For many years now {s} has lived in the town of {v}."),
    "guild": ("{s} belongs to the guild {v}.", "The guild of {s} is {v}.", "By oath {s} belongs to {v}."),
    "master": ("{v} leads {s}.", "The master of {s} is {v}.", "At the head of {s} stands its master, {v}."),
    "seat": ("{s} meets in {v}.", "The seat of {s} is the town of {v}.", "The hall of {s} stands in {v}."),
    "founder": ("{v} founded {s}.", "{s} was founded by {v}.", "The founder of {s} was {v}."),
    "twin": ("{s} is twinned with {v}.", "The twin town of {s} is {v}.", "A treaty makes {v} the twin town of {s}."),
    "author": ("{v} wrote {s}.", "{s} was written by {v}.", "The author of {s} is {v}."),
    "members": ("The members of {s} are {v}.", "These belong to {s}: {v}.", "{s} consists of {v}."),
    "works": ("{s} wrote {v}.", "The books by {s} are {v}.", "From the pen of {s} came {v}."),
    "born": ("{s} was born in the year {v}.", "The year of birth of {s} is {v}.", "In {v} {s} was born."),
    "elevation": (
        "{s} lies {v} metres above the sea.",
        "The elevation of {s} is {v} metres.",
        "At its market cross {s} stands {v} metres above the sea.",
    ),
}

UNRECORDED: dict[str, str] = {
    "teacher": "Who taught {s} is not recorded.",
    "home": "Where {s} lives is not recorded.",
    "guild": "Whether {s} belongs to a guild is not recorded.",
    "master": "Who leads {s} is not recorded.",
    "seat": "Where {s} meets is not recorded.",
    "founder": "Who founded {s} is not recorded.",
    "twin": "No twin town of {s} is recorded.",
    "author": "Who wrote {s} is not recorded.",
    "members": "{s} has no members on record.",
    "works": "No book by {s} is on record.",
    "born": "The year of birth of {s} is not recorded.",
    "elevation": "The elevation of {s} is not recorded.",
}

RELATION_LABELS: dict[str, str] = {
    "teacher": "Teacher",
    "home": "Home",
    "guild": "Guild",
    "master": "Master",
    "seat": "Seat",
    "founder": "Founder",
    "twin": "Twin town",
    "author": "Author",
    "members": "Members",
    "works": "Books",
    "born": "Year of birth",
    "elevation": "Metres above the sea",
}
"""Labels of relations in tables and lists."""

OPENINGS: dict[str, tuple[str, ...]] = {
    "person": (
        "{s} is one of the names that everyone in the valleys knows.",
        "Much has been said about {s}, and little of it by those who were there.",
        "This page collects what the register holds on {s}.",
    ),
    "town": (
        "{s} is a town with one bridge and more bells than it needs.",
        "Whoever comes to {s} by the old road sees its chimneys first.",
        "The register describes {s} as quiet, which its inhabitants dispute.",
    ),
    "guild": (
        "{s} is a guild with a long memory and short meetings.",
        "Few doors are as plain as that of {s}, and few as well kept.",
        "The register lists {s} among the guilds in good standing.",
    ),
    "book": (
        "{s} is a book that more people own than have read.",
        "Copies of {s} are easy to find and hard to borrow.",
        "The register describes {s} as bound in grey cloth.",
    ),
}

ASIDES = (
    "A song names it beside {o}, for the sake of the rhyme.",
    "Travellers sometimes confuse it with {o}.",
    "An earlier page on this subject was lost in a flood and written anew from memory.",
    "The same shelf holds the page on {o}.",
    "Opinions on the matter differ, and are given freely.",
    "The scribe who kept this page had a fondness for long winters.",
    "A margin note says only: see {o}.",
    "Nothing about it was changed at the last revision but the ink.",
    "It is mentioned, together with {o}, in a list whose purpose is forgotten.",
)

GREETINGS = (
    "Dear friend, you asked for news from the road, and so I write down what I heard at the inn.",
    "Honoured cousin, the coach stood still for two days, and there was much talk.",
    "To whoever opens this first: it is gossip, and I pass it on as such.",
)

PARTINGS = (
    "I cannot vouch for any of it.",
    "You know how people talk when it rains.",
    "Should the register say otherwise, believe the register.",
)

ARCHIVE_GUIDE = """# About this archive

The archive holds three sorts of papers on the same things.

1. The **current register**: one page on each person, town, guild and book, and directories made from them.
2. **Older editions** of such pages. Each says that it is superseded.
3. **Letters**. They repeat what somebody heard.

## Which paper is right

Where papers disagree, the current register is right. An older edition comes next, and a letter last. What the register
calls not recorded is not known, whatever a letter says.
"""
