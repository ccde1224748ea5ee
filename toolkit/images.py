"""Images for a model: told by content, scaled to what models accept."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.texts.truncate import format_size

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MAX_FILE_BYTES", "ImageView", "binary_mime_type", "image_mime_type", "view_image"]

#: Larger files are not even fetched.
MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_SIDE = 2000
_MAX_BASE64 = int(4.5 * 1024 * 1024)
# More pixels than this (about 400 MB once decoded) are a mistake or an attack.
_MAX_PIXELS = 100_000_000
_JPEG_QUALITIES = (90, 75, 60)

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
)
_BMP_HEADER_SIZES = (12, 16, 40, 52, 56, 64, 108, 124)
_BINARIES = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-executable"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\x00asm", "application/wasm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageView:
    """What a model gets of an image.

    Attributes:
        note: What the image is, its size and scale; or why it is not shown.
        data: Base64 of the image to show, or None.
        mime_type: Type of `data`.
        width: Pixels of the original, or None when that is not known.
        height: Pixels of the original, or None when that is not known.
        scale: Factor that the sides were multiplied with; 1.0 when it was not scaled.
    """

    note: str
    data: str | None = None
    mime_type: str | None = None
    width: int | None = None
    height: int | None = None
    scale: float = 1.0


def image_mime_type(content: bytes) -> str | None:
    """Return the type of an image that models can look at, by its first bytes, else None."""
    for magic, mime_type in _MAGIC:
        if content.startswith(magic):
            return mime_type
    # A text may begin so; the screen size and flags after it are never all letters.
    if content[:6] in (b"GIF87a", b"GIF89a") and not _is_printable(content[6:13]):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    # "BM" begins many a text; the header's size after it does not.
    if content[:2] == b"BM" and int.from_bytes(content[14:18], "little") in _BMP_HEADER_SIZES:
        return "image/bmp"
    return None


def binary_mime_type(content: bytes) -> str | None:
    """Return the type of some well-known binary formats, by their first bytes, else None."""
    return next((kind for magic, kind in _BINARIES if content.startswith(magic)), None)


def _is_printable(data: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)


def view_image(content: bytes, mime_type: str) -> ImageView:
    """Fit an image into 2000x2000 pixels and 4.5 MB of base64; blocks, so run it in a thread.

    Without Pillow an image that is small enough in bytes is shown as it is.
    """
    try:
        import PIL.Image
    except ImportError:
        return _unscaled(content, mime_type)
    head = f"{mime_type}, {format_size(len(content))}"
    try:
        with PIL.Image.open(io.BytesIO(content)) as image:
            width, height = image.size
            head = f"{mime_type}, {width}x{height}, {format_size(len(content))}"
            if width * height > _MAX_PIXELS:
                return ImageView(note=f"{head}; too many pixels to be shown")
            if _fits(content, width, height) and mime_type != "image/bmp":
                return ImageView(
                    note=head,
                    data=base64.b64encode(content).decode(),
                    mime_type=mime_type,
                    width=width,
                    height=height,
                )
            return _scaled(image, head)
    # A broken image raises whatever its decoder likes; warnings about bombs may be errors too.
    except Exception as error:
        return ImageView(note=f"{head}; it cannot be shown: {_reason(error)}")


def _unscaled(content: bytes, mime_type: str) -> ImageView:
    head = f"{mime_type}, {format_size(len(content))}"
    if _base64_size(len(content)) > _MAX_BASE64:
        return ImageView(
            note=f"{head}; over {format_size(_MAX_BASE64)} of base64, and Pillow, which would "
            "scale it, is not installed"
        )
    return ImageView(note=head, data=base64.b64encode(content).decode(), mime_type=mime_type)


def _scaled(image: Image, head: str) -> ImageView:
    from PIL import ImageOps

    frames = getattr(image, "n_frames", 1)
    width, height = image.size
    turned = ImageOps.exif_transpose(image)
    shown = turned.convert("RGBA" if _is_transparent(turned) else "RGB")
    side = _MAX_SIDE
    while side >= 100:
        shown.thumbnail((side, side))
        encoded = _encoded(shown)
        if encoded is not None:
            break
        side = side * 3 // 4
    else:
        return ImageView(note=f"{head}; it cannot be made small enough to be shown")
    data, mime_type = encoded
    scale = max(shown.size) / max(width, height)
    note = head
    if scale < 1:
        note += (
            f"; scaled to {shown.width}x{shown.height} "
            f"(multiply its coordinates by {1 / scale:.2f} for the original)"
        )
    if mime_type not in head:
        note += f"; shown as {mime_type}"
    if frames > 1:
        note += f"; the first of {frames} frames"
    return ImageView(
        note=note, data=data, mime_type=mime_type, width=width, height=height, scale=scale
    )


def _encoded(image: Image) -> tuple[str, str] | None:
    """Return base64 and type of the best form that is small enough, or None."""
    for quality in (None, *_JPEG_QUALITIES):
        out = io.BytesIO()
        if quality is None:
            image.save(out, "PNG")
        else:
            image.convert("RGB").save(out, "JPEG", quality=quality)
        if _base64_size(out.tell()) <= _MAX_BASE64:
            kind = "image/png" if quality is None else "image/jpeg"
            return base64.b64encode(out.getvalue()).decode(), kind
    return None


def _fits(content: bytes, width: int, height: int) -> bool:
    return max(width, height) <= _MAX_SIDE and _base64_size(len(content)) <= _MAX_BASE64


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4


def _is_transparent(image: Image) -> bool:
    return "A" in image.mode or "transparency" in image.info


def _reason(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "its content is not a whole image"
    return str(error) or type(error).__name__
