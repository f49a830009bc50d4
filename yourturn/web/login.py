"""The door: who are you? It says nothing about what waits behind it."""

from __future__ import annotations

import re

from ..client import Client
from ..client.admin import LINK, SESSION
from ..core.errors import NotKnown, TooMany
from ..core.model import MINUTE
from ..display import person
from ..http import auth
from .request import Go, Page, Shown, Visit

#: For a page whose address is a secret: nobody keeps it, and nobody is told where one comes from. (The site is: a browser that
#: may not say even that does not say where a form comes from either.)
HUSH = ((b"cache-control", b"no-store"), (b"referrer-policy", b"strict-origin"))
_SECRET = re.compile(r"yl_[0-9a-f]{48}(?![0-9a-f])")


def home(visit: Visit) -> Shown:
    return Go("/inbox")


def _back(given: str) -> str:
    """Only to a page of ours: //elsewhere and \\elsewhere are addresses of others."""
    fine = given.startswith("/") and not given.startswith(("//", "/\\", "/login", "/logout")) and given.isprintable()
    return given[:500] if fine else "/inbox"


def show(visit: Visit) -> Shown:
    back = _back(visit.query.get("next", ""))
    if visit.session:
        return Go(back)
    notice = "You were signed out. Nothing was sent." if "out" in visit.query else ""
    return _door(back, notice=notice, tone="soon")


def _door(next: str, name: str = "", wrong: str = "", notice: str = "", tone: str = "", status: int = 200) -> Page:
    known = {"next": next, "name": name, "wrong": wrong, "notice": notice, "tone": tone, "minutes": LINK // MINUTE, "me": None}
    return Page("login.html", known, status)


def away(visit: Visit) -> Shown:
    """What a browser keeps for the time without a network, and shows in the place of a page that it has not seen."""
    text = "This device cannot reach the server, and has not kept this page."
    hint = "An answer that has not arrived is kept on this device and sent when you are back. The inbox can be read as it was."
    return Page("bare.html", {"title": "Not live", "text": text, "hint": hint, "again": True, "csrf": "", "waiting": 0})


def _about(visit: Visit) -> str:
    return "".join(c for c in visit.headers.get("user-agent", "") if c.isprintable())[:200]


def _in(visit: Visit, session: str, where: str) -> Go:
    return Go(where, (("set-cookie", auth.cookie(visit.site.here, session, SESSION // 1_000_000)),))


def enter(visit: Visit) -> Shown:
    name, back = visit.field("name").strip(), _back(visit.field("next"))
    client = visit.site.desks.client()
    try:
        made = client.login(name, visit.field("password"), address=visit.address, about=_about(visit))
    except (NotKnown, TooMany) as error:
        words = f"{error.message}. {error.hint}" if error.hint else f"{error.message}."
        return _door(back, name[:200], words, status=error.http_status if isinstance(error, TooMany) else 401)
    return _in(visit, made["session"], back)


def link(visit: Visit) -> Shown:
    """Looking at a link does not use it up: what reads mail looks at every link in it. Who presses the button is let in."""
    secret = visit.path["link"][:200]
    try:
        whose = _home_of(visit, secret).whose_link(secret)
    except NotKnown as error:
        return _no_longer(visit, error)
    return Page("enter.html", {"link": secret, "whose": person(whose), "waiting": 0}, headers=HUSH)


def use_link(visit: Visit) -> Shown:
    """The secret comes in the form, and from here on it is worthless and in no address."""
    given = visit.field("link").strip()[:2000]
    found = _SECRET.search(given)  # pasted as it came: bare, or at the end of an address
    secret = found[0] if found else given[:200]
    try:
        made = _home_of(visit, secret).use_link(secret, about=_about(visit))
    except NotKnown as error:
        return _no_longer(visit, error)
    return _in(visit, made["session"], _back(visit.field("next")) if visit.field("next") else "/")


def _home_of(visit: Visit, secret: str) -> Client:
    desks = visit.site.desks
    return desks.client(workspace=desks.home("link", secret))


def _no_longer(visit: Visit, error: NotKnown) -> Shown:
    if visit.session:
        return Go("/inbox")
    return _door("/inbox", notice=f"{error.message}. {error.hint}", status=401)


def leave(visit: Visit) -> Shown:
    if visit.session:
        visit.client.logout(visit.session)
    gone = (("set-cookie", auth.cookie(visit.site.here, "", 0)), ("clear-site-data", '"cache"'))
    return Go("/login", gone)
