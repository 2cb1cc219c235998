"""Groups of English words that may replace one another in a question and its answer.

The words are general English. Each row is a group, and a word may be in several groups. A
match by another word of a group counts less than a match of the word itself.
"""

from offing_graphs.extractive.word_forms import compute_stem

_GROUPS = """
    large largest big bigger biggest size maximum max limit most greatest huge length
    small smallest little minimum min least fewest
    long longer longest duration time seconds milliseconds minutes period lasts
    often frequency interval every periodically once twice daily weekly yearly
    many number count amount total quantity maximum
    fast faster fastest quick quickly speed performance performant rapid optimize optimized throughput
    slow slower slowest slowly latency delay degrade degradation deoptimize
    begin start launch boot initialize
    end stop finish terminate expire until over complete deadline
    quit exit close shutdown
    enable enabled activate opt allow support
    disable disabled deactivate off
    delete remove clear erase purge drop
    change modify alter override customize replace update edit
    create make build new construct generate
    own custom customized
    error errors exception failure fail fails failed throw throws broken
    break broke broken disconnect interrupted lost crash fail
    refuse reject deny forbid disallow prevent prohibited rejects not
    allow permit accept support possible
    need require required must mandatory necessary
    safe secure security unsafe dangerous danger risk vulnerable vulnerability attack attacks
    protect prevent guard defend against avoid mitigate
    hide secret conceal redact exclude mask omit private sensitive
    password credential credentials secret username authentication login
    send transmit emit dispatch forward deliver
    get receive obtain retrieve fetch
    return give yield respond response answer
    wait delay pause sleep timeout
    keep retain store hold save persist preserve remain
    reuse keep persistent pool pooling share shared alive
    use usage utilize employ
    choose select pick prefer decide
    buy price cost fee pay paid commercial
    write wrote written author
    who author maintainer owner team person
    when date time
    why because reason since due
    difference differ different unlike compare whereas instead
    win wins precedence priority override
    unit seconds milliseconds bytes
    size bytes length
    default defaults standard initial
    install installed setup
    check verify validate inspect detect test
    detect notice discover identify find recognize
    find locate search discover
    record log track history capture
    show display print output
    old older legacy deprecated previous obsolete
    new newer latest recent modern
    exact exactly accurate precise precision
    several multiple many various
    each every per individual
    spread distribute evenly balance
    behind upstream
    idle inactive unused
    open established active
    abort cancel cancelled interrupt stop
    replay playback repeat
    retry retries reattempt again
    share shared common reuse
    example sample
    kind type category
    step stage phase lifecycle order
    order sequence first then
    instrument monitor observe diagnostics trace
    told notified informed event subscribe
    cleartext plaintext plain unencrypted
    encrypt encryption encrypted tls
    person people passenger user
    fit suitable good recommended
    bad discouraged avoid antipattern worst
    purpose goal aim
    principle principles philosophy
    folder directory path
    picture image photo
    teach learn tutorial guide
"""


def _build_synonyms() -> dict[str, tuple[str, ...]]:
    synonyms: dict[str, set[str]] = {}
    for row in _GROUPS.strip().splitlines():
        group = {compute_stem(word) for word in row.split()}
        for word in group:
            synonyms.setdefault(word, set()).update(group - {word})
    return {word: tuple(sorted(others)) for word, others in synonyms.items()}


_SYNONYMS = _build_synonyms()


def find_synonyms(word: str) -> tuple[str, ...]:
    """Return the stems of the synonyms of a stem. Empty means that none are known."""
    return _SYNONYMS.get(word, ())
