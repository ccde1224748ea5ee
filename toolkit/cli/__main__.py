"""`python -m toolkit.cli`: the command, where its script is not on the path."""

from __future__ import annotations

from toolkit.cli.main import main

main()
