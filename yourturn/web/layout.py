"""Renders templates, and escapes everything that they print.

Every printed value goes through `escape_text`: text is escaped, and characters that hide, turn or move text are shown by their
names. `exact` keeps the original text where a form sends it back.
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


class NavItem(NamedTuple):
    name: str
    label: str
    href: str
    icon: str


NAV = (
    NavItem("inbox", "Inbox", "/inbox", "inbox"),
    NavItem("tasks", "Tasks", "/tasks", "tasks"),
    NavItem("activity", "Activity", "/activity", "activity"),
    NavItem("stats", "Statistics", "/stats", "stats"),
    NavItem("settings", "Settings", "/settings", "settings"),
)


def escape_text(value: Any) -> Any:
    """Escaped text, with hidden characters by their names. The span's attribute has no quotes, so that it cannot end an attribute
    in which the text is printed."""
    if value is None:
        return ""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    if value.isascii() and value.isprintable():
        return escape(value)
    text = value.replace("\r\n", "\n")
    signs = [Markup(f"<span class=ctl>{name_of(sign)}</span>") for sign in HIDDEN.findall(text)]
    out = Markup("")
    for part, sign in zip(HIDDEN.split(text), [*signs, Markup("")], strict=True):
        out += escape(part) + sign
    return out


def plain(value: Any) -> Markup:
    """For attributes that people read: hidden characters by their names, in brackets."""
    return escape(safe(str(value)))


def exact(value: Any) -> Markup:
    """For a value that a form sends back unchanged."""
    return escape("" if value is None else str(value))


_ENV = Environment(
    loader=FileSystemLoader(assets.FOLDER.parent / "templates"),
    autoescape=True,
    finalize=escape_text,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    cache_size=-1,
)
_ENV.globals |= {
    "asset": assets.url, "nav": NAV, "boot": "", "modules": assets.MODULES, "here": "", "csrf": "", "waiting": 0, "theme": "",
    "keyless": False, "me": None, "follows": False, "drawn": 0, "again": False,
}  # fmt: skip
_ENV.filters |= {"plain": plain, "exact": exact}


def render(template: str, **context: Any) -> str:
    return _ENV.get_template(template).render(**context)


def render_macro(template: str, name: str, *args: Any, **context: Any) -> str:
    return str(getattr(_ENV.get_template(template).make_module(context), name)(*args))


def load_templates() -> None:
    """Compiles all templates when the server starts."""
    for name in _ENV.list_templates():
        _ENV.get_template(name)
