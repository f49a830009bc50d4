"""The frame around every page, and the one place in which a page becomes text.

Whatever a template prints goes through `shown`: text is escaped, and signs that hide, turn or move text are shown by their
names. A template cannot forget that; where the exact text must come back from a form, it says `exact`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ..display.terminal import HIDDEN, name_of, safe
from . import assets

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types yourturn"
)


class Item(NamedTuple):
    name: str
    label: str
    href: str
    icon: str


#: The main places, in the order in which they stand.
NAV = (
    Item("inbox", "Inbox", "/inbox", "inbox"),
    Item("tasks", "Tasks", "/tasks", "tasks"),
    Item("activity", "Activity", "/activity", "activity"),
    Item("stats", "Statistics", "/stats", "stats"),
    Item("settings", "Settings", "/settings", "settings"),
)


def shown(value: Any) -> Any:
    """Text as text, with hidden signs by their names. The attribute has no quotes: inside quotes it cannot end them."""
    if value is None:
        return ""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    if value.isascii() and value.isprintable():
        return escape(value)
    parts = HIDDEN.split(value.replace("\r\n", "\n"))
    signs = [Markup(f"<span class=ctl>{name_of(sign)}</span>") for sign in HIDDEN.findall(value.replace("\r\n", "\n"))]
    out = Markup("")
    for part, sign in zip(parts, [*signs, Markup("")], strict=True):
        out += escape(part) + sign
    return out


def plain(value: Any) -> Markup:
    """For an attribute that is read: names in brackets."""
    return escape(safe(str(value)))


def exact(value: Any) -> Markup:
    """For a value that a form sends back as it is."""
    return escape("" if value is None else str(value))


_ENV = Environment(
    loader=FileSystemLoader(assets.FOLDER.parent / "templates"),
    autoescape=True,
    finalize=shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    cache_size=-1,
)
_ENV.globals |= {
    "asset": assets.url, "nav": NAV, "boot": "", "modules": assets.MODULES, "here": "", "csrf": "", "waiting": 0, "theme": "",
    "keyless": False, "me": None, "desk": "", "follows": False, "drawn": 0, "again": False,
}  # fmt: skip
_ENV.filters |= {"plain": plain, "exact": exact}


def render(template: str, **context: Any) -> str:
    return _ENV.get_template(template).render(**context)


def part(template: str, name: str, *args: Any, **context: Any) -> str:
    """One macro of a template."""
    return str(getattr(_ENV.get_template(template).make_module(context), name)(*args))


def warm() -> None:
    """Read all templates before anybody waits for them."""
    for name in _ENV.list_templates():
        _ENV.get_template(name)
