"""The language of a file, told by its name."""

from __future__ import annotations

import posixpath

__all__ = ["language_of"]

_BY_NAME = {
    "cmakelists.txt": "cmake",
    "containerfile": "dockerfile",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "makefile",
    "justfile": "just",
    "makefile": "makefile",
    "rakefile": "ruby",
}
_EXTENSIONS = {
    "bash": "bash sh zsh",
    "c": "c h",
    "clojure": "clj cljs",
    "cmake": "cmake",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "css": "css",
    "dart": "dart",
    "diff": "diff patch",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fish": "fish",
    "go": "go",
    "graphql": "gql graphql",
    "haskell": "hs",
    "hcl": "hcl tf",
    "html": "htm html",
    "ini": "cfg conf ini",
    "java": "java",
    "javascript": "cjs js mjs",
    "json": "json jsonl",
    "jsx": "jsx",
    "julia": "jl",
    "kotlin": "kt kts",
    "latex": "tex",
    "less": "less",
    "lua": "lua",
    "markdown": "markdown md",
    "nix": "nix",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1",
    "protobuf": "proto",
    "python": "py pyi pyw",
    "r": "r",
    "restructuredtext": "rst",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala",
    "scss": "scss",
    "sql": "sql",
    "svelte": "svelte",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "cts mts ts",
    "vue": "vue",
    "xml": "svg xml xsd xsl",
    "yaml": "yaml yml",
    "zig": "zig",
}
_BY_EXTENSION = {
    extension: language
    for language, extensions in _EXTENSIONS.items()
    for extension in extensions.split()
}


def language_of(path: str) -> str | None:
    """Return the language's usual short name ("python"), or None for an unknown one."""
    name = posixpath.basename(path).lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, dot, extension = name.rpartition(".")
    return _BY_EXTENSION.get(extension) if dot and stem else None
