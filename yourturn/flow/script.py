"""Finds, reads and loads the script of a run.

`feature.py`, `feature.py:release` (a function of that name), `package.module:release`, `feature.lua`. The current file is run;
where there is none, on another machine for example, the source that was recorded with the run is. A Python file is executed in a
module of its own (script_modules.py), in which the functions of api.py are defined without an import.
"""

from __future__ import annotations

import ast
import os
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ..core.canonical_json import digest
from ..core.errors import Invalid, NotFound
from . import script_modules
from .results import LuaError

LIMIT = 1_000_000


class BadScript(Invalid):
    """The script cannot be loaded."""


class Source(NamedTuple):
    file: str  #: as the run names it
    body: str
    path: Path | None  #: the local file, if there is one

    @property
    def digest(self) -> str:
        return digest(self.body)


def workflow(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as a workflow: `turn run FILE` finds it under any name."""
    function.__yourturn_workflow__ = True  # type: ignore[attr-defined]
    return function


def root(folder: Path) -> Path:
    """The folder that script paths are relative to: the nearest one upward with a `.yourturn` folder, else the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".yourturn").is_dir()), folder)


def split(ref: str) -> tuple[str, str]:
    """The file or module, and the function."""
    head, colon, name = ref.rpartition(":")
    return (head, name) if colon and name.isidentifier() else (ref, "")


def actor_name(ref: str) -> str:
    """The actor name of a script: feature.lua, for flows/feature.lua:release."""
    from ..core.fields import actor

    name = split(ref)[0].replace("\\", "/").rpartition("/")[2]
    try:
        return actor("script", f"agent:{name}").partition(":")[2]
    except Invalid:
        return "workflow"


def read(ref: str, root: Path) -> Source | None:
    """The local file of a script, or None."""
    head = split(ref)[0]
    path = root / head
    if not path.is_file() and not head.endswith((".py", ".lua")) and "/" not in head:
        path = _module(head, root) or path
    try:
        if not path.is_file():
            return None
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            content = file.read(LIMIT + 1)
        if len(content) > LIMIT:
            raise BadScript(f"{head} is too long for a script", reason=f"at most {LIMIT:,} bytes")
        return Source(head, _text(content), path)
    except OSError as error:
        raise BadScript(f"{head} cannot be read", reason=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise BadScript(f"{head} is not UTF-8 text") from None


def _text(content: bytes) -> str:
    """As Python reads a text file: without a byte order mark, and each line ends in one newline."""
    return content.removeprefix(BOM_UTF8).decode().replace("\r\n", "\n").replace("\r", "\n")


def _module(name: str, root: Path) -> Path | None:
    own = root.joinpath(*name.split("."))
    for file in (own.with_name(f"{own.name}.py"), own / "__init__.py"):
        if file.is_file():
            return file
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec and spec.origin else None


def alike(ref: str, old: str, new: str) -> bool:
    """Whether two sources differ only in comments and layout."""
    if language(ref) == "lua":
        return old == new
    try:
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def language(ref: str) -> str:
    return "lua" if split(ref)[0].endswith(".lua") else "python"


def load(ref: str, source: Source) -> Callable[[str], Any]:
    """The workflow function. Raises BadScript with the line of the error."""
    if language(ref) == "lua":
        try:
            from .lua import load as load_lua
        except ImportError:
            raise BadScript(f"{ref} is a Lua script, and Lua is not installed", hint="pip install 'yourturn[lua]'") from None
        return load_lua(source.body, source.file, split(ref)[1])
    return _python(ref, source)


class ScriptFile:
    """The file of a run's script."""

    def __init__(self, ref: str, root: Path) -> None:
        self.ref, self.root = ref, root

    def read(self) -> Source | None:
        return read(self.ref, self.root)

    def load(self, source: Source) -> tuple[Callable[[str], Any], str]:
        """The workflow function, and the name of its file in tracebacks."""
        return load(self.ref, source), str(source.path or source.file)


def unload(function: Callable[..., Any]) -> None:
    """Remove the module of a script that has ended. Existing references to it stay valid."""
    script_modules.unload(str(getattr(function, "__globals__", {}).get("__name__", "")))


def helpers(function: Callable[..., Any]) -> list[str]:
    """The files beside the script that it imported."""
    return script_modules.loaded(str(getattr(function, "__globals__", {}).get("__name__", "")))


def _python(ref: str, source: Source) -> Callable[[str], Any]:
    from .api import FUNCTIONS, Config
    from .results import StepFailed

    where = str(source.path or source.file)
    own = os.path.dirname(os.path.realpath(source.path)) if source.path is not None else ""  # noqa: PTH120
    above, package = _package(own) if own else ("", "")
    folder = script_modules.folder_of((above, own) if own else ())
    module = folder.script()
    module.__dict__.update(FUNCTIONS, StepFailed=StepFailed, workflow=workflow, __file__=where)
    module.__package__ = f"{folder.name}.{package}" if package else folder.name
    try:
        with script_modules.setting(script_modules.loading.get() or Config()):
            exec(_code(source.body, where), module.__dict__)
        return _chosen(module, split(ref)[1], source.file)
    except SyntaxError as error:
        script_modules.unload(module.__name__)
        if error.filename != where:
            raise BadScript(f"{source.file} cannot be loaded", reason=error_line(error, where)) from None
        raise BadScript(f"{source.file} is not Python", reason=f"line {error.lineno}: {error.msg}") from None
    except BadScript:
        script_modules.unload(module.__name__)
        raise
    except Exception as error:
        script_modules.unload(module.__name__)
        raise BadScript(f"{source.file} cannot be loaded", reason=error_line(error, where)) from error


@lru_cache(256)
def _code(body: str, where: str) -> CodeType:
    """The compiled script: the same source is compiled once in a process."""
    return compile(body, where, "exec", dont_inherit=True)


def _package(folder: str) -> tuple[str, str]:
    """The folder from which a script imports its neighbours, and the package that the script belongs to, if any."""
    above, names = Path(folder), list[str]()
    while (above / "__init__.py").is_file() and above.name.isidentifier():
        above, names = above.parent, [above.name, *names]
    return str(above), ".".join(names)


def _chosen(module: ModuleType, name: str, file: str) -> Callable[[str], Any]:
    chosen: Any
    own = {k: v for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__}
    marked = {k: v for k, v in own.items() if getattr(v, "__yourturn_workflow__", False)}
    if name:
        chosen = vars(module).get(name)
    elif "workflow" in own:
        chosen = own["workflow"]
    elif len(marked) > 1:
        names = list(marked)
        raise BadScript(f"{file} has several workflows: {', '.join(names)}", hint=f"Name one: turn run {file}:{names[0]}")
    else:
        chosen = next(iter(marked.values()), None)
    if not callable(chosen) or getattr(chosen, "__code__", None) is None:
        wanted = f"function {name}" if name else "def workflow(prompt)"
        raise BadScript(f"{file} has no {wanted}", hint="A workflow is a function that takes the prompt.")
    if not _takes_a_prompt(chosen):
        raise BadScript(f"{chosen.__name__} in {file} does not take the prompt", hint=f"Like: def {chosen.__name__}(prompt):")
    if chosen.__code__.co_flags & 0x2A0:
        raise BadScript(f"{chosen.__name__} in {file} is async or a generator", hint="A workflow is a plain function.")
    return chosen  # type: ignore[no-any-return]


def _takes_a_prompt(function: Callable[..., Any]) -> bool:
    """Whether the function can be called with one argument."""
    code = function.__code__
    if isinstance(function, FunctionType) and code.co_argcount == 1 and not code.co_kwonlyargcount and not vars(function):
        return True
    import inspect

    try:
        inspect.signature(function).bind("")
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def error_line(error: BaseException, where: str = "") -> str:
    """An exception in one line, with the line number in the script."""
    if isinstance(error, LuaError):
        return str(error)
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == where:
            line = at.tb_lineno
        at = at.tb_next
    return f"line {line}: {message}" if line else message


def must_read(ref: str, root: Path) -> Source:
    """Read and check the script of a new run. Raises NotFound or BadScript."""
    source = read(ref, root)
    if source is None:
        head = split(ref)[0]
        why = "it is a folder" if (root / head).is_dir() else ""
        hint = "A script is a file like feature.py or feature.lua, or a module."
        raise NotFound(f"There is no script {head}", reason=why, hint=hint)
    unload(load(ref, source))
    return source
