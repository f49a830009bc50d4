"""Imports of modules beside a script.

Two scripts may each have a `helpers.py` beside them, and one worker runs both. So modules beside a script are imported under a
package name that is unique to the folder (`yourturn_script_3.helpers`), by an `__import__` that only the script and its helpers
see. The standard library takes precedence, and installed modules come last, as for any Python script. When one of the files
changes, the next load uses fresh modules; scripts that are running keep theirs.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import site
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

PREFIX = "yourturn_script_"
#: The configuration that config() changes when a script calls it at module level, while the script is loaded.
loading: ContextVar[Any] = ContextVar("yourturn_loading", default=None)
_numbers = count(1)
_lock = threading.Lock()
_folders: dict[tuple[str, ...], Folder] = {}
_by_name: dict[str, Folder] = {}
_INSTALLED = {
    str(Path(path).resolve())
    for path in (*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), site.getusersitepackages())
    if path
}


class Folder:
    """The modules beside the scripts of one folder, in the version that was loaded."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.name = f"{PREFIX}{next(_numbers)}"
        self.paths = paths
        self.files: dict[str, tuple[int, int, int]] = {}  #: loaded files, and their state then
        self.users = 0  #: scripts that are loaded from here
        self.replaced = False
        self.package = ModuleType(self.name)
        self.package.__path__ = list(paths)
        sys.modules[self.name] = self.package
        _by_name[self.name] = self

    def changed(self) -> bool:
        return any(_state(file) != state for file, state in self.files.items())

    def drop(self) -> None:
        """Remove the modules: no script uses them, and there is a newer version."""
        for name in [name for name in sys.modules if name == self.name or name.startswith(f"{self.name}.")]:
            del sys.modules[name]
        _by_name.pop(self.name, None)

    def builtins(self) -> dict[str, Any]:
        return {**vars(builtins), "__import__": self._import}

    def script(self) -> ModuleType:
        """A new module for a script, under a unique name."""
        module = ModuleType(f"{self.name}.workflow_{next(_numbers)}")
        module.__dict__["__builtins__"] = self.builtins()
        sys.modules[module.__name__] = module
        self.users += 1
        return module

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0) -> Any:
        top = name.partition(".")[0]
        if level or not top:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if not self._has(top):
            try:
                module = builtins.__import__(name, globals, locals, fromlist, level)
                return self._importlib(module) if module is importlib else module
            except ModuleNotFoundError as error:
                if error.name != top or not any(Path(path, top).is_dir() for path in self.paths):
                    raise
        module = builtins.__import__(f"{self.name}.{name}", globals, locals, fromlist, 0)
        return module if fromlist else sys.modules[f"{self.name}.{top}"]

    def _importlib(self, module: ModuleType) -> ModuleType:
        """importlib with an import_module() that finds modules beside the script."""
        own = ModuleType(module.__name__)
        own.__dict__.update(vars(module), import_module=self._import_module)
        return own

    def _import_module(self, name: str, package: str | None = None) -> Any:
        return importlib.import_module(name, package) if name.startswith(".") else self._import(name, fromlist=("__name__",))

    def _has(self, top: str) -> bool:
        if top in sys.stdlib_module_names or top == "yourturn":
            return False
        return any(Path(path, f"{top}.py").is_file() or Path(path, top, "__init__.py").is_file() for path in self.paths)


def folder_of(paths: tuple[str, ...]) -> Folder:
    """The current version of the folder's modules."""
    own = tuple(path for path in dict.fromkeys(paths) if path not in _INSTALLED)
    with _lock:
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        folder = _folders.get(own)
        if folder is not None and not folder.changed():
            return folder
        if folder is not None:
            folder.replaced = True
            if not folder.users:
                folder.drop()
        folder = _folders[own] = Folder(own)
        return folder


def unload(module_name: str) -> None:
    """Remove the module of a script that has ended."""
    folder = _by_name.get(module_name.partition(".")[0])
    with _lock:
        if folder is not None and sys.modules.pop(module_name, None) is not None:
            folder.users -= 1
            if folder.replaced and not folder.users:
                folder.drop()


def loaded(module_name: str) -> list[str]:
    """The files beside a script that were loaded from its folder."""
    folder = _by_name.get(module_name.partition(".")[0])
    return sorted(Path(file).name for file in list(folder.files)) if folder is not None else []


@contextmanager
def setting(config: Any) -> Iterator[None]:
    token = loading.set(config)
    try:
        yield
    finally:
        loading.reset(token)


def _state(file: str) -> tuple[int, int, int]:
    try:
        stat = Path(file).stat()
    except OSError:
        return (0, 0, 0)
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class _Loader(SourceFileLoader):
    """Compiles the source file on every load: writes and reads no bytecode cache."""

    def __init__(self, folder: Folder, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.folder = folder

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        self.folder.files[path] = _state(path)
        return compile(self.get_data(path), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self.folder.builtins()
        with setting(None):  # a helper is loaded once for many runs, so config() in it has no run
            super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        folder = _by_name.get(fullname.partition(".")[0])
        if folder is None or path is None:
            return None
        importlib.invalidate_caches()
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader and spec.origin:
            loader = _Loader(folder, fullname, spec.origin)
            places = spec.submodule_search_locations
            spec = importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader, submodule_search_locations=places)
        return spec


_finder = _Finder()
