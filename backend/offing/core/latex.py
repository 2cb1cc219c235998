r"""LaTeX in plain text: what an escape or a command stands for.

Texts of papers contain `3.5\%`, `Fig.~3`, `$\alpha$` or `Poincar\'e`, and a person or a model that quotes them writes
the characters that these stand for. Only commands that stand for characters are read, no macros and no formulas.
"""

import re
import unicodedata

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi",
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega",
)
_OTHERS = (
    "varepsilon=\u03b5 vartheta=\u03b8 varphi=\u03c6 times=\u00d7 pm=\u00b1 mp=\u2213 cdot=\u00b7 approx=\u2248 sim=~",
    "equiv=\u2261 neq=\u2260 ne=\u2260 leq=\u2264 le=\u2264 geq=\u2265 ge=\u2265 ll=\u226a gg=\u226b to=\u2192",
    "rightarrow=\u2192 leftarrow=\u2190 Rightarrow=\u21d2 infty=\u221e partial=\u2202 nabla=\u2207 sum=\u2211",
    "degree=\u00b0 circ=\u00b0 ldots=... dots=... cdots=... textendash=- textemdash=- percent=%",
    "ss=\u00df ae=\u00e6 AE=\u00c6 oe=\u0153 OE=\u0152 o=\u00f8 O=\u00d8 aa=\u00e5 AA=\u00c5 l=\u0142",
    "L=\u0141 S=\u00a7",
)


def _look_up_greek(name: str) -> str:
    case, letter = "CAPITAL" if name[0].isupper() else "SMALL", name.lower().replace("lambda", "lamda")
    return unicodedata.lookup(f"GREEK {case} LETTER {letter}")


_SYMBOLS = {
    **{name: _look_up_greek(name) for name in " ".join(_GREEK).split()},
    **{pair.partition("=")[0]: pair.partition("=")[2] for pair in " ".join(_OTHERS).split()},
    "quad": " ",
    "qquad": " ",
}
"""What a command stands for."""

_STYLES = (
    "bf boldsymbol displaystyle em emph it left mathbb mathbf mathcal mathfrak mathit mathrm mathsf mathtt mbox",
    "operatorname right rm sc text textbf textit textmd textnormal textrm textsc textsf textsl texttt textup tt",
)
_STYLE_NAMES = frozenset(" ".join(_STYLES).split())
"""Commands that only set the style of their argument."""

_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", "c": "\u0327"}
_ACCENT = re.compile(r"\\(?:(['`^\"~=])\{?([AEIOUYaeiouyNn])\}?|(c)\{([A-Za-z])\})")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SPACE = re.compile(r"\\[,;:> ]")
_ESCAPED = re.compile(r"\\([%&_#'\"])")
_QUOTES = re.compile(r"``|''")
_STARTS = frozenset("\\$~{}`'")


def read_latex(text: str, at: int) -> tuple[int, str] | None:
    """Return the end of the LaTeX at a position, and the characters that it stands for, which may be none.

    `None` means that no LaTeX begins there. The dollar signs of formulas and the braces of groups stand for nothing.
    """
    if text[at] not in _STARTS:
        return None
    if text[at] in "${}":
        return at + 1, ""
    if text[at] == "~":
        return (at + 1, " ") if _joins_words(text, at) else None
    if match := _QUOTES.match(text, at):
        return match.end(), '"'
    return _read_command(text, at) if text[at] == "\\" else None


def _joins_words(text: str, at: int) -> bool:
    before, after = text[max(0, at - 1) : at], text[at + 1 : at + 2]
    return bool(before and after) and not (before.isspace() or after.isspace())


def _read_command(text: str, at: int) -> tuple[int, str] | None:
    if match := _ACCENT.match(text, at):
        mark, letter = match[1] or match[3], match[2] or match[4]
        return match.end(), unicodedata.normalize("NFC", letter + _ACCENTS[mark])
    if match := _SPACE.match(text, at):
        return match.end(), " "
    if match := _ESCAPED.match(text, at):
        return match.end(), match[1]
    if text[at + 1 : at + 2] in {"$", "{", "}", "!"} and at + 1 < len(text):
        return at + 2, ""
    match = _COMMAND.match(text, at)
    if match is None or (match[1] not in _SYMBOLS and match[1] not in _STYLE_NAMES):
        return None
    return match.end(), _SYMBOLS.get(match[1], "")
