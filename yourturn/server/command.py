"""`turn serve`: serves the inbox, the API, MCP and the events over HTTP."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from ..core.errors import NotAllowed, Usage, YourturnError


def serve_args(p: Any) -> None:
    p.add_argument("--host", default="127.0.0.1", metavar="HOST", help="where to listen (127.0.0.1)")
    p.add_argument("--port", type=_port, default=8321, metavar="PORT", help="where to listen (8321; 0 takes a free one)")
    p.add_argument("--public-url", default="", metavar="URL", help="how others reach it: https://turn.example.org")
    p.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="another name that it may be called by")
    p.add_argument("--tls-cert", metavar="FILE", help="serve https: the certificate, with what it needs to be believed")
    p.add_argument("--tls-key", metavar="FILE", help="and its key")
    p.add_argument("--workers", type=_count, default=1, metavar="N", help="processes (1)")
    p.add_argument("--log", action="store_true", help="write a line for each request to stderr")


def _port(text: str) -> int:
    import argparse

    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError("a port from 0 to 65535 is wanted")
    return int(text)


def _count(text: str) -> int:
    import argparse

    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:4]) <= 64:
        raise argparse.ArgumentTypeError("a whole number from 1 to 64 is wanted")
    return int(text)


def serve(a: Namespace) -> int:
    if bool(a.tls_cert) != bool(a.tls_key):
        raise Usage("--tls-cert and --tls-key go together")
    try:
        from . import run
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("anyio", "httptools", "jinja2", "starlette", "uvicorn"):
            raise
        raise YourturnError("turn serve needs a web server", hint="Install it with: pip install 'yourturn[serve]'") from None
    from ..config import connect, locate

    if os.environ.get("YOURTURN_URL") and not a.db:
        raise Usage("YOURTURN_URL names a server already", hint="Unset it, or give --db.")
    address = locate(a.db, os.environ)
    with connect(address, as_=a.as_, project=a.project) as desk:
        if not desk.who.is_person:
            raise NotAllowed(f"{desk.who.name} cannot serve the desk", reason="that is a person's business")
        link = desk.create_link()["link"]
    options = run.Options(
        os.path.abspath(address) if "://" not in address else address,  # noqa: PTH100
        a.host, a.port, a.public_url, tuple(a.allow_host), a.tls_cert, a.tls_key, a.workers, a.log,
    )  # fmt: skip

    def ready(url: str) -> None:
        if a.json:
            import json

            print(json.dumps({"url": url, "login": f"{url}/enter/{link}", "pid": os.getpid()}), flush=True)
            return
        print(f"Yourturn is at {url}", f"Log in once with: {url}/enter/{link}", "Stop it with Ctrl-C.", sep="\n", flush=True)

    code = run.run(options, ready)
    if code == 0 and not a.json:
        print("Stopped.", file=sys.stderr)
    return code
