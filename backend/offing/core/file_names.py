"""Names of files for people, made of text that may contain anything."""

import re
import unicodedata

from offing.core.report_texts import join_lines

MAX_NAME_CHARS = 80
MAX_NAME_BYTES = 180
"""Maximum bytes in UTF-8. Most file systems allow 255 for a name with its ending."""

_SEPARATORS = re.compile(r'[<>:"/\\|?*]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def make_file_stem(title: str, fallback: str) -> str:
    """Return a name without ending that every common file system takes, or `fallback` if nothing of `title` is left.

    Characters that separate folders or are reserved become spaces. Characters without a shape are left out.
    """
    visible = "".join(c for c in _SEPARATORS.sub(" ", join_lines(title)) if unicodedata.category(c) not in ("Cf", "Co"))
    short = " ".join(visible.split())[:MAX_NAME_CHARS].encode()[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    stem = short.strip(" .")
    return fallback if not stem or _DEVICES.fullmatch(stem) else stem
