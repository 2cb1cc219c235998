"""Read who wrote a PDF and when: from its information dictionary and its XMP metadata.

XMP can state the date of publication. Otherwise the date is the one on which the PDF was created. The date of its last
change is not read.
"""

import html
import re
from typing import Any

from offing.library.publication import Publication, build_publication

MAX_PACKET_BYTES = 200_000
"""Maximum bytes of an XMP packet that are read."""
MIN_PDF_YEAR = "1990"
"""PDF did not exist before, so an earlier date of creation is wrong."""

_PACKET_START, _PACKET_END = b"<x:xmpmeta", b"</x:xmpmeta>"
_PDF_NAMESPACE = b"http://ns.adobe.com/pdf/1.3/"
"""Part of the metadata of the document itself. That of an image inside it names the author of the image."""
_CREATED = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?")
_PUBLISHED = re.compile(
    r"\bprism:(?:publicationDate|coverDate)(?:=[\"']|\s[^<>]{0,200}>|>)(?:\s*<rdf:\w{3}>\s*<rdf:li[^<>]{0,80}>)?"
    r"\s*([^<>\"']{4,40})"
)
_CREATORS = re.compile(r"<dc:creator\b[^<>]{0,200}>(.{0,5000}?)</dc:creator>", re.DOTALL)
_ITEM = re.compile(r"<rdf:li\b[^<>]{0,200}>([^<>]{1,500})</rdf:li>")


def read_publication(document: Any, data: bytes) -> Publication:
    """Return what a `pypdfium2.PdfDocument` with these bytes states about its authors and its date."""
    author, created = (str(document.get_metadata_value(key) or "") for key in ("Author", "CreationDate"))
    packet = _find_packet(data)
    dates = [*_PUBLISHED.findall(packet), _parse_created(created)]
    known = build_publication([author], dates)
    return known if known.author else build_publication(_list_creators(packet), dates)


def _parse_created(created: str) -> str:
    """Return the date of `D:20240301120000+01'00'` in ISO form. Empty if it has another form or is too early."""
    parts = _CREATED.match(created)
    return "-".join(filter(None, parts.groups())) if parts and parts.group(1) >= MIN_PDF_YEAR else ""


def _find_packet(data: bytes) -> str:
    """Return the last XMP packet that describes the PDF itself. Empty if there is none that can be read."""
    packet, end = b"", 0
    while (start := data.find(_PACKET_START, end)) >= 0 and (end := data.find(_PACKET_END, start)) >= 0:
        packet_bytes = data[start : min(end, start + MAX_PACKET_BYTES)]
        packet = packet_bytes if _PDF_NAMESPACE in packet_bytes else packet
    return packet.decode("utf-8", "replace")


def _list_creators(packet: str) -> list[str]:
    stated = _CREATORS.search(packet)
    return [html.unescape(name) for name in _ITEM.findall(stated.group(1))] if stated else []
