"""Login with a password or a one-time link, and logout. These pages show nothing of the desk."""

from __future__ import annotations

import re

from ..client import Client
from ..client.admin import LINK, SESSION
from ..core.errors import NotKnown, TooMany
from ..core.model import MINUTE
from ..display import person
from ..server import auth
from .request import Page, PageRequest, PageResult, Redirect

#: For a page whose address contains a secret: no caching, no path in the Referer. (With no-referrer a browser would not send the
#: Origin of the form either.)
SECRET_PAGE = {"cache-control": "no-store", "referrer-policy": "strict-origin"}
_SECRET = re.compile(r"yl_[0-9a-f]{48}(?![0-9a-f])")


def home(request: PageRequest) -> PageResult:
    return Redirect("/inbox")


def _local_path(path: str) -> str:
    """The path if it leads to a page of ours, else the inbox: //host and /\\host lead to other sites."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\", "/login", "/logout")) and path.isprintable()
    return path[:500] if fine else "/inbox"


def show(request: PageRequest) -> PageResult:
    next_path = _local_path(request.query.get("next", ""))
    if request.session:
        return Redirect(next_path)
    notice = "You were signed out. Nothing was sent." if "out" in request.query else ""
    return _login_page(next_path, notice=notice, tone="soon")


def _login_page(next_path: str, name: str = "", wrong: str = "", notice: str = "", tone: str = "", status: int = 200) -> Page:
    context = {"next": next_path, "name": name, "wrong": wrong, "notice": notice, "tone": tone, "minutes": LINK // MINUTE}
    return Page("login.html", {**context, "me": None}, status)


def offline(request: PageRequest) -> PageResult:
    """The page that the service worker shows without a network in place of a page that it has not cached."""
    text = "This device cannot reach the server, and has not kept this page."
    hint = "An answer that has not arrived is kept on this device and sent when you are back. The inbox can be read as it was."
    return Page("error.html", {"title": "Not live", "text": text, "hint": hint, "again": True, "csrf": "", "waiting": 0})


def login(request: PageRequest) -> PageResult:
    name, next_path = request.field("name").strip(), _local_path(request.field("next"))
    client = request.state.pool.client()
    try:
        reply = client.login(name, request.field("password"), address=request.client_address, about=user_agent(request))
    except (NotKnown, TooMany) as error:
        wrong = f"{error.message}. {error.hint}" if error.hint else f"{error.message}."
        return _login_page(next_path, name[:200], wrong, status=error.http_status if isinstance(error, TooMany) else 401)
    return _start_session(request, reply["session"], next_path)


def user_agent(request: PageRequest) -> str:
    return "".join(c for c in request.headers.get("user-agent", "") if c.isprintable())[:200]


def session_cookie(request: PageRequest, session: str) -> tuple[str, str]:
    """The header that sets the cookie; an empty session deletes it."""
    return ("set-cookie", auth.session_cookie(request.state.address, session, SESSION // 1_000_000))


def _start_session(request: PageRequest, session: str, next_path: str) -> Redirect:
    return Redirect(next_path, (session_cookie(request, session),))


def show_link(request: PageRequest) -> PageResult:
    """Loading the page does not use the link, because mail filters load every link. Its button does."""
    secret = request.path_params["link"][:200]
    try:
        whose = _client_of_link(request, secret).whose_link(secret)
    except NotKnown as error:
        return _invalid_link(request, error)
    return Page("enter.html", {"link": secret, "whose": person(whose), "waiting": 0}, headers=SECRET_PAGE)


def use_link(request: PageRequest) -> PageResult:
    pasted = request.field("link").strip()[:2000]
    match = _SECRET.search(pasted)  # alone, or at the end of an address
    secret = match[0] if match else pasted[:200]
    try:
        reply = _client_of_link(request, secret).use_link(secret, about=user_agent(request))
    except NotKnown as error:
        return _invalid_link(request, error)
    return _start_session(request, reply["session"], _local_path(request.field("next")) if request.field("next") else "/")


def _client_of_link(request: PageRequest, secret: str) -> Client:
    pool = request.state.pool
    return pool.client(workspace=pool.workspace_of("link", secret))


def _invalid_link(request: PageRequest, error: NotKnown) -> PageResult:
    if request.session:
        return Redirect("/inbox")
    return _login_page("/inbox", notice=f"{error.message}. {error.hint}", status=401)


def logout(request: PageRequest) -> PageResult:
    if request.session:
        request.client.logout(request.session)
    return Redirect("/login", (session_cookie(request, ""), ("clear-site-data", '"cache"')))
