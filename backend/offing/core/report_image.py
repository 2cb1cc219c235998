"""Images that the code of a run has written, as parts of an exported report. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from offing.core.report_labels.labels import ReportLabels

MAX_IMAGE_BYTES = 2 * 2**20
MAX_TOTAL_BYTES = 5 * 2**20
"""Maximum bytes of all images of a file, so that a document stays within the limit of its writer."""
MAX_IMAGE_PIXELS = 40_000_000
"""An image with more pixels takes more memory than its writer may use."""
PNG_START = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class ReportImage:
    """An image in the PNG format."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ImageSelection:
    """The images that a file contains, and the names of those that it leaves out because of a limit."""

    images: tuple[ReportImage, ...] = ()
    left_out: tuple[str, ...] = ()

    def adding(self, image: ReportImage) -> Self:
        """Return the selection with one more image, in the list where it belongs."""
        total = sum(len(one.data) for one in self.images) + len(image.data)
        if len(image.data) > MAX_IMAGE_BYTES or total > MAX_TOTAL_BYTES or find_png_size(image.data) is None:
            return type(self)(self.images, (*self.left_out, image.name))
        return type(self)((*self.images, image), self.left_out)


NO_IMAGES = ImageSelection()


def find_png_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels as the header states them.

    `None` means that this is not the start of a PNG file, or that the image has more than `MAX_IMAGE_PIXELS`.
    """
    if not data.startswith(PNG_START) or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    return (width, height) if 0 < width * height <= MAX_IMAGE_PIXELS else None


def describe_left_out(names: Sequence[str], labels: ReportLabels) -> str:
    """Return the sentence that names images that a file leaves out. Empty if there are none."""
    return labels.images_left_out.fill(len(names), names=labels.comma.join(names)) if names else ""
