"""What the pages are made of besides words: one style, a few modules, icons. Their address names their content, so that a
browser asks for each of them once."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
MEDIA = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip


class Asset(NamedTuple):
    media: str
    body: bytes
    small: bytes  #: compressed, or nothing where that does not help
    tag: str


def _asset(media: str, body: bytes) -> Asset:
    small = b"" if media == "image/png" else gzip.compress(body, 9, mtime=0)
    return Asset(media, body, small, f'"{sha256(body).hexdigest()[:16]}"')


def _spoken(path: Path) -> bytes:
    """A file without the comments that have lines of their own; the lines stay, so that an error names the right one."""
    comments = {".js": rb"(?m)^ *//.*$", ".css": rb"(?m)^ */\*.*\*/$"}.get(path.suffix)
    return re.sub(comments, b"", path.read_bytes()) if comments else path.read_bytes()


ASSETS = {path.name: _asset(MEDIA[path.suffix], _spoken(path)) for path in sorted(FOLDER.iterdir()) if path.suffix in MEDIA}
#: All of them, in one word.
BUILD = sha256("".join(f"{name}{asset.tag}" for name, asset in ASSETS.items()).encode()).hexdigest()[:10]


def url(name: str) -> str:
    if name not in ASSETS:
        raise KeyError(name)
    return f"/static/{BUILD}/{name}"


#: Modules that a page with a frame loads: named in its head, so that they are not found one after the other.
MODULES = tuple(name for name in ASSETS if name.endswith(".js") and name not in ("app.js", "door.js", "sw.js", "work.js"))

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


def served(asset: Asset, asked: Headers, forever: bool) -> Response:
    headers = {
        "content-type": asset.media,
        "cache-control": "public, max-age=31536000, immutable" if forever else "no-cache",
        "etag": asset.tag,
        "vary": "accept-encoding",
    }
    if asset.tag in asked.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if asset.small and "gzip" in asked.get("accept-encoding", ""):
        return Response(asset.small, headers={**headers, "content-encoding": "gzip"})
    return Response(asset.body, headers=headers)
