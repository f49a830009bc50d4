"""Static files of the pages: style sheets, JavaScript modules, icons, the manifest. Their addresses contain a digest of their
contents, so that browsers cache them for ever."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).parent / "static"
MEDIA = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip


class Asset(NamedTuple):
    media: str
    body: bytes
    compressed: bytes  #: empty for images, which are compressed already
    etag: str


def _asset(media: str, body: bytes) -> Asset:
    compressed = b"" if media == "image/png" else gzip.compress(body, 9, mtime=0)
    return Asset(media, body, compressed, f'"{sha256(body).hexdigest()[:16]}"')


def _without_comments(path: Path) -> bytes:
    """The file without comments on lines of their own; empty lines remain, so that line numbers in errors are right."""
    comments = {".js": rb"(?m)^ *//.*$", ".css": rb"(?m)^ */\*.*\*/$"}.get(path.suffix)
    return re.sub(comments, b"", path.read_bytes()) if comments else path.read_bytes()


ASSETS = {
    path.name: _asset(MEDIA[path.suffix], _without_comments(path))
    for path in sorted(FOLDER.iterdir())
    if path.suffix in MEDIA
}
#: Digest of all assets.
BUILD = sha256("".join(f"{name}{asset.etag}" for name, asset in ASSETS.items()).encode()).hexdigest()[:10]
#: Modules that the page preloads, because the browser would discover them one after the other.
MODULES = tuple(name for name in ASSETS if name.endswith(".js") and name not in ("app.js", "login.js", "sw.js", "work.js"))


def url(name: str) -> str:
    if name not in ASSETS:
        raise KeyError(name)
    return f"/static/{BUILD}/{name}"


MANIFEST = _asset(
    MEDIA[".webmanifest"],
    json.dumps(
        {
            "name": "Yourturn", "short_name": "Yourturn", "description": "What waits for you", "id": "/inbox",
            "start_url": "/inbox", "scope": "/", "display": "standalone", "background_color": "#15181e", "theme_color": "#15181e",
            "icons": [
                {"src": url("mark.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
                {"src": url("icon-192.png"), "sizes": "192x192", "type": "image/png", "purpose": "any maskable"},
                {"src": url("icon-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "any maskable"},
            ],
        }
    ).encode(),
)  # fmt: skip


class StaticFiles:
    """Serves /static/…, the manifest and the service worker. They contain no secrets and need no credential."""

    def __init__(self, name: str = "") -> None:
        self.name = name  #: of the file, if the route serves one; else it comes from the path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._respond(Request(scope))(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"allow": "GET, HEAD"})
        name = self.name or request.path_params["name"]
        asset = MANIFEST if name == "manifest.webmanifest" else ASSETS.get(name)
        if asset is None:
            return Response("There is no such file", 404, {"content-type": "text/plain"})
        immutable = not self.name and request.path_params["build"] == BUILD
        response = _response(asset, request.headers, immutable)
        if name == "sw.js":  # a service worker has a policy of its own, which must allow its requests
            response.headers["content-security-policy"] = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
        return response


def _response(asset: Asset, request_headers: Headers, immutable: bool) -> Response:
    headers = {
        "content-type": asset.media,
        "cache-control": "public, max-age=31536000, immutable" if immutable else "no-cache",
        "etag": asset.etag,
        "vary": "accept-encoding",
    }
    if asset.etag in request_headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if asset.compressed and "gzip" in request_headers.get("accept-encoding", ""):
        return Response(asset.compressed, headers={**headers, "content-encoding": "gzip"})
    return Response(asset.body, headers=headers)


#: Paths of static files, and the file that each serves.
ROUTES = {"/manifest.webmanifest": "manifest.webmanifest", "/sw.js": "sw.js", "/static/{build}/{name}": ""}
