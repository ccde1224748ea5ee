"""Import the engine's modules from memory; this source is run first on a target.

It has no imports from the engine: when it runs, none can be imported yet.
"""

import sys
from importlib.machinery import ModuleSpec


class MemoryImporter:
    """Find and load modules whose sources are held here; each is compiled when it is imported.

    Args:
        sources: Map from full module names to source bytes.
        packages: Those that are packages.
    """

    def __init__(self, sources, packages):
        self._sources = sources
        self._packages = packages

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a module that is held here, else None."""
        if name not in self._sources:
            return None
        spec = ModuleSpec(name, self, is_package=name in self._packages)
        spec.origin = _file_name(name)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        """Let the import system make the module."""

    def exec_module(self, module):
        """Run the module's source."""
        name = module.__name__
        code = compile(self._sources[name], _file_name(name), "exec", 0, True)
        exec(code, module.__dict__)

    def get_source(self, name):
        """Return a module's source, which is what tracebacks ask for."""
        return self._sources[name].decode("utf-8")


def _file_name(name):
    return "remotehands:%s.py" % name.replace(".", "/")


def install(blob):
    """Make the modules in `blob` importable, before anything that a path could hold.

    Args:
        blob: Names and sources in turn, separated by NUL; the name of a package ends with "/".
    """
    fields = blob.split(b"\0")
    sources, packages = {}, set()
    for at in range(0, len(fields), 2):
        name = fields[at].decode("ascii")
        if name.endswith("/"):
            name = name[:-1]
            packages.add(name)
        sources[name] = fields[at + 1]
    sys.meta_path.insert(0, MemoryImporter(sources, packages))
