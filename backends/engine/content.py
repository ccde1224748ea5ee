"""What kind of file some first bytes belong to; pure functions of those bytes."""

#: How many bytes from the start of a file the functions here want to see.
HEAD_BYTES = 8192

# Sizes of the header after the file header in BMP files; "BM" alone begins many a text.
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)

_BINARY_TYPES = (
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\xfe\xed\xfa\xce", "application/x-mach-binary"),
    (0, b"\xfe\xed\xfa\xcf", "application/x-mach-binary"),
    (0, b"\xce\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"!<arch>\n", "application/x-archive"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"\x00\x01\x00\x00", "font/ttf"),
    (0, b"OTTO", "font/otf"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (0, b"\x93NUMPY", "application/x-npy"),
)


def image_mime_type(head):
    """Return the type of an image that can be shown, judged by its first bytes, else None.

    Args:
        head: The first bytes of a file, 32 or more where it has them.

    Returns:
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp" or None.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    # A text may begin with "GIF89a"; the screen size and flags after it are never all letters.
    if head[:6] in (b"GIF87a", b"GIF89a") and not _is_printable(head[6:13]):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return "image/bmp"
    return None


def binary_type(head):
    """Return a media type for well-known binary formats, judged by their first bytes, else None.

    Meant for content that is known not to be text: some of these marks could begin a text too.
    """
    for offset, mark, mime_type in _BINARY_TYPES:
        if head.startswith(mark, offset):
            return mime_type
    return None


def _is_printable(data):
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)
