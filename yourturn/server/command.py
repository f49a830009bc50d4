"""`turn serve`: serves the pages, the API, MCP and the event stream over HTTP."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentTypeError, Namespace
from typing import Any

from ..config import connect, locate
from ..core.errors import NotAllowed, Usage, YourturnError


def serve_args(p: Any) -> None:
    p.add_argument("--host", default="127.0.0.1", metavar="HOST", help="address to listen on (127.0.0.1)")
    p.add_argument("--port", type=_port, default=8321, metavar="PORT", help="port to listen on (8321; 0 takes a free one)")
    p.add_argument("--public-url", default="", metavar="URL", help="the address that clients use, like https://turn.example.org")
    p.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a further host name to accept")
    p.add_argument("--tls-cert", metavar="FILE", help="serve https: the certificate with its chain, in PEM")
    p.add_argument("--tls-key", metavar="FILE", help="the key of the certificate, in PEM")
    p.add_argument("--workers", type=_count, default=1, metavar="N", help="number of processes (1)")
    p.add_argument("--log", action="store_true", help="log each request to stderr")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65535:
        raise ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:4]) <= 64:
        raise ArgumentTypeError("must be a whole number from 1 to 64")
    return int(text)


def serve(a: Namespace) -> int:
    if bool(a.tls_cert) != bool(a.tls_key):
        raise Usage("--tls-cert and --tls-key go together")
    try:
        from . import run  # late: an optional dependency
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("anyio", "httptools", "jinja2", "starlette", "uvicorn"):
            raise
        raise YourturnError("turn serve needs a web server", hint="Install it with: pip install 'yourturn[serve]'") from None
    if os.environ.get("YOURTURN_URL") and not a.db:
        raise Usage("YOURTURN_URL is set: this desk has a server already", hint="Unset it, or use --db.")
    address = locate(a.db, os.environ)
    with connect(address, as_=a.as_, project=a.project) as desk:
        if not desk.who.is_person:
            raise NotAllowed(f"{desk.who.name} cannot serve the desk", reason="only a person can")
        link = desk.create_link()["link"]
    options = run.Options(
        os.path.abspath(address) if "://" not in address else address,  # noqa: PTH100
        a.host, a.port, a.public_url, tuple(a.allow_host), a.tls_cert, a.tls_key, a.workers, a.log,
    )  # fmt: skip

    def ready(url: str) -> None:
        if a.json:
            print(json.dumps({"url": url, "login": f"{url}/enter/{link}", "pid": os.getpid()}), flush=True)
            return
        print(f"Yourturn is at {url}", f"Log in once with: {url}/enter/{link}", "Stop it with Ctrl-C.", sep="\n", flush=True)

    code = run.run(options, ready)
    if code == 0 and not a.json:
        print("Stopped.", file=sys.stderr)
    return code
