"""Addresses, folders and texts to try policies on, with what a person says that each of them is."""

LOCATIONS: dict[str, tuple[str, int] | None] = {
    "https://a.example/": ("a.example", 443),
    "https://a.example": ("a.example", 443),
    "HTTPS://A.Example/x": ("a.example", 443),
    "http://a.example/x?y=1": ("a.example", 80),
    "https://a.example:8443/": ("a.example", 8443),
    "https://a.example./": ("a.example", 443),
    "https://b.a.example/": ("b.a.example", 443),
    "https://xa.example/": ("xa.example", 443),
    "https://a.example.evil.net/": ("a.example.evil.net", 443),
    "https://evil.net/https://a.example/": ("evil.net", 443),
    "https://evil.net/?q=the+harbour+master": ("evil.net", 443),
    "https://a.example/the+harbour+master": ("a.example", 443),
    "https://a.example@evil.net/": None,
    "https://a.example\\.evil.net/": None,
    "https://a.exa mple/": None,
    "https://a%2eexample/": None,
    "ftp://a.example/": None,
    "https:/a.example/": None,
    "//a.example/": None,
    "javascript:alert(1)": None,
    "//data/x": None,
    "C:/data": None,
}
"""Host and port of an address. None: it is none that can be judged."""

HOSTS = ("a.example", "*.a.example", "*.example", "a.example:8443", "evil.net", "b.a.example")

PLAIN = ("a", "ab", "aab", "a.b", "b", "the Harbour Master", "harbour", "the-harbour-master")

PATHS: dict[str, str | None] = {
    "/data": "/data",
    "/data/": "/data",
    "/data/x": "/data/x",
    "/data//x/./y": "/data/x/y",
    "/Data/x": "/Data/x",
    "/database": "/database",
    "/": "/",
    "x": "x",
    "./x": "x",
    "x/../y": None,
    "/data/../etc": None,
    "..": None,
    "~/x": None,
    "": None,
    "/data/%2e%2e/etc": None,
    "/data\\..\\etc": None,
    "//data/x": None,
    "C:/data": None,
    "/data/\u2025/x": None,
    "/data/x\n": None,
    **{text: text for text in PLAIN},
}
"""A path without its detours. None: it is none that can be judged."""

FOLDERS = ("/data", "/data/x", "/")

REGEXES = ("a*", "(a|b)+", "a.b", "[^a]*", "a{1,2}b?", ".*", "a\\.b", "(?:ab|a)(b?)", "[ab]{2}")

READ = "Ask the harbour master for the tide tables of 1871."
"""Untrusted text that a run has seen."""

TEXTS = ("", "a\nb", *LOCATIONS, *PATHS)
