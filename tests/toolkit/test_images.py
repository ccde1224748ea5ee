"""What a model gets of an image."""

from __future__ import annotations

import base64
import io
import os
import sys

import pytest

from toolkit.images import binary_mime_type, image_mime_type, view_image

PIL_Image = pytest.importorskip("PIL.Image")


def picture(width=10, height=10, kind="PNG", mode="RGB", **options):
    out = io.BytesIO()
    PIL_Image.new(mode, (width, height)).save(out, kind, **options)
    return out.getvalue()


def shown(view):
    return PIL_Image.open(io.BytesIO(base64.b64decode(view.data)))


@pytest.mark.parametrize(
    ("kind", "mime_type"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
        ("BMP", "image/bmp"),
    ],
)
def test_images_are_told_by_content(kind, mime_type):
    content = picture(kind=kind)
    assert image_mime_type(content) == mime_type
    view = view_image(content, mime_type)
    assert (view.width, view.height, view.scale) == (10, 10, 1.0)
    assert shown(view).size == (10, 10)


@pytest.mark.parametrize(
    "content", [b"", b"text", b"GIF89a, they say", b"BM and words", b"RIFF1234WAVE"]
)
def test_text_is_no_image(content):
    assert image_mime_type(content) is None


def test_a_fitting_image_is_not_touched():
    content = picture()
    view = view_image(content, "image/png")
    assert base64.b64decode(view.data) == content


def test_bmp_is_shown_as_png():
    view = view_image(picture(kind="BMP"), "image/bmp")
    assert view.mime_type == "image/png"
    assert "shown as image/png" in view.note


@pytest.mark.parametrize(
    ("size", "fitted"),
    [((3000, 1500), (2000, 1000)), ((100, 4000), (50, 2000)), ((2001, 10), (2000, 10))],
)
def test_a_large_image_fits_2000_by_2000(size, fitted):
    view = view_image(picture(*size), "image/png")
    assert shown(view).size == fitted
    assert view.scale == pytest.approx(2000 / max(size))


def test_an_image_of_many_bytes_fits_4_5_mb():
    noise = PIL_Image.frombytes("RGB", (1900, 1900), os.urandom(1900 * 1900 * 3))
    out = io.BytesIO()
    noise.save(out, "PNG")
    view = view_image(out.getvalue(), "image/png")
    assert view.data is not None
    assert len(view.data) <= 4.5 * 1024 * 1024


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_every_kind_of_pixel_can_be_scaled(mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    view = view_image(picture(2500, 10, kind, mode), f"image/{kind.lower()}")
    assert shown(view).size == (2000, 8)


def test_of_moving_images_the_first_frame_is_shown_when_scaled():
    frames = [PIL_Image.new("RGB", (2500, 10), colour) for colour in ("red", "blue")]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    view = view_image(out.getvalue(), "image/gif")
    assert "the first of 2 frames" in view.note


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\nrubbish" * 9, b"\xff\xd8\xff\xe0"]
)
def test_broken_images_are_told(content):
    view = view_image(content, "image/png")
    assert view.data is None
    assert "cannot be shown" in view.note


def test_a_truncated_image_that_must_be_decoded_is_told():
    content = picture(2500, 2500, "BMP")
    assert view_image(content[: len(content) // 2], "image/bmp").data is None


def test_a_bomb_is_not_decoded():
    out = io.BytesIO()
    PIL_Image.new("1", (20_000, 20_000)).save(out, "PNG")
    view = view_image(out.getvalue(), "image/png")
    assert view.data is None
    assert "not be" in view.note or "too many" in view.note or "bomb" in view.note


def test_without_pillow_small_images_are_shown_as_they_are(monkeypatch):
    content = picture()
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    view = view_image(content, "image/png")
    assert base64.b64decode(view.data) == content
    large = view_image(b"\x89PNG\r\n\x1a\n" + bytes(5_000_000), "image/png")
    assert large.data is None
    assert "Pillow" in large.note


def test_binaries_are_told_by_content():
    assert binary_mime_type(b"PK\x03\x04rest") == "application/zip"
    assert binary_mime_type(b"rest") is None
