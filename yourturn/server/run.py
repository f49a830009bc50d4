"""Running the server: sockets, processes, and a stop that cuts nobody off.

The socket is opened here, before anything else, so that a port that is taken is told in our words. With several processes
each has the whole server, on the same socket; what they share, they share through the database. A process that dies is
replaced. On a signal, streams end first (who watches comes back elsewhere and goes on where it was), then the requests that
are being worked on, then the process.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import uvicorn

from ..core.errors import Usage, YourturnError
from ..http.auth import place
from .app import create_app
from .protocol import Protocol

#: Seconds that requests may take to end.
GRACE = 10
#: Seconds after which a thread that computes lets another one go on.
SWITCH = 0.001
#: New objects after which somebody looks for garbage; a request makes hundreds, and leaves none.
GARBAGE = 10_000


class Options(NamedTuple):
    address: str
    host: str = "127.0.0.1"
    port: int = 8321
    public_url: str = ""
    allow: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    workers: int = 1
    log: bool = False


class Server(uvicorn.Server):
    """Streams are let go before the server waits for what is open."""

    def __init__(self, config: uvicorn.Config, app: Any, began: Callable[[], None]) -> None:
        super().__init__(config)
        self._site = app.state.site
        self._began = began

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._began()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.quiet()
        await super().shutdown(sockets)
        self._captured_signals.clear()  # we were asked to stop, and have: that is no death by a signal


def _settle_down() -> None:
    """Threads that want to go on wait a moment for each other, not several; and what is there from the start stays: nobody looks
    through it for garbage again, while requests wait."""
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # said so, asyncio sends small answers at once
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host.strip("[]"), port))
    except OSError as error:
        found.close()
        raise YourturnError(
            f"Cannot listen on {host}:{port}", reason=error.strerror or str(error), hint="Try another with --port."
        ) from None
    found.listen(2048)
    found.set_inheritable(True)
    return found


def run(options: Options, ready: Callable[[str], None]) -> int:
    here = place(options.host, options.public_url, bool(options.tls_cert), options.allow)
    for file in (options.tls_cert, options.tls_key):
        if file and not os.access(file, os.R_OK):
            raise Usage(f"{file} cannot be read")
    _check_tls(options)
    bound = listen(options.host, options.port)
    scheme = "https" if options.tls_cert else "http"
    name = f"[{options.host}]" if ":" in options.host else options.host
    url = here.public_url or f"{scheme}://{name}:{bound.getsockname()[1]}"
    try:
        if options.workers == 1:
            return one(options, bound, lambda: ready(url))
        return several(options, bound, lambda: ready(url))
    finally:
        bound.close()


def _check_tls(options: Options) -> None:
    """Before any process is made for it."""
    if not options.tls_cert:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key)
    except OSError:
        pair = f"{options.tls_cert} and {options.tls_key}"
        raise Usage(f"{pair} are no certificate and its key", hint="Both in PEM, the key without a password.") from None


def speaking(app: Any, grace: int = GRACE, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app, http=Protocol, log_config=None, access_log=False, timeout_graceful_shutdown=grace, ws="none", proxy_headers=False,
        server_header=False, date_header=False, timeout_keep_alive=30, lifespan="on", **more,
    )  # fmt: skip


def one(options: Options, bound: socket.socket, began: Callable[[], None]) -> int:
    """This process is the server."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO if options.log else logging.WARNING, format="%(asctime)s %(message)s"
    )
    here = place(options.host, options.public_url, bool(options.tls_cert), options.allow)
    app = create_app(options.address, here=here)
    config = speaking(app, ssl_certfile=options.tls_cert, ssl_keyfile=options.tls_key)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    logging.getLogger("mcp").setLevel(logging.WARNING)

    def begun() -> None:
        _settle_down()
        began()

    server = Server(config, app, begun)
    server.run(sockets=[bound])
    return 0 if server.started else 1


def several(options: Options, bound: socket.socket, began: Callable[[], None]) -> int:
    """A parent that holds the socket and minds its children."""
    stopping = False
    children: dict[int, float] = {}

    def stop(*_: Any) -> None:
        nonlocal stopping
        stopping = True
        for pid in children:
            _tell(pid)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    read, write = os.pipe()
    waiting, deaths = options.workers, 0
    try:
        for _ in range(options.workers):
            _spawn(options, bound, write, children)
        while children:
            if waiting > 0 and select.select([read], [], [], 0.1)[0]:
                waiting -= len(os.read(read, 64))
                if waiting <= 0 and not stopping:
                    began()
            for pid in _dead(children, block=waiting <= 0):
                early = time.monotonic() - children.pop(pid) < 1
                deaths += waiting > 0
                if stopping or deaths > 3 * options.workers:
                    stop()
                    continue
                if early:
                    time.sleep(0.5)
                if not stopping:
                    _spawn(options, bound, write, children)
    finally:
        os.close(read)
        os.close(write)
    return 0 if waiting <= 0 or deaths == 0 else 1


def _dead(children: dict[int, float], block: bool) -> list[int]:
    """Children that have ended; waits for one if there is nothing else to do."""
    pid, _ = os.waitpid(-1, 0 if block else os.WNOHANG)
    return [pid] if pid in children else []


def _outlive_nobody(parent: int) -> None:
    """A process whose parent is gone stops too."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _begun(write: int) -> None:
    os.write(write, b".")


def _tell(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def _spawn(options: Options, bound: socket.socket, write: int, children: dict[int, float]) -> None:
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # nobody is told to stop before it is known, or with its parent's ears
    parent, pid = os.getpid(), os.fork()
    if pid:
        children[pid] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return
    code = 1
    try:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        threading.Thread(target=_outlive_nobody, args=(parent,), daemon=True).start()
        code = one(options, bound, lambda: _begun(write))
    except BaseException as error:
        logging.getLogger("yourturn.http").critical("a process of the server ends: %s", error)
    finally:
        os._exit(code)
