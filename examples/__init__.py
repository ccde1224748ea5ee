"""Programs to read and to start from: `python -m examples.NAME`, with this repository's `.venv`."""
