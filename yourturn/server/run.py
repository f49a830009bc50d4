"""Runs the server: socket, worker processes, graceful shutdown.

The socket is bound here, before anything else, so that a port in use is reported as one of our errors. With several worker
processes each runs the whole server on the shared socket; they share state only through the database. The parent replaces a
worker that dies. On a signal the event streams end first (their clients reconnect and continue where they were), then the
requests in progress, then the process.
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
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette

from ..core.errors import Usage, YourturnError
from .address import server_address
from .app import create_app
from .errors import log

#: Seconds that requests in progress may take to finish at shutdown.
GRACE = 10
#: Seconds after which a computing thread hands the interpreter to a waiting one. Python's default is 5 ms.
SWITCH_INTERVAL = 0.001
#: Allocations between two garbage collections: a request allocates hundreds of objects and leaves no cycles.
GC_THRESHOLD = 10_000


class Options(NamedTuple):
    database: str
    host: str = "127.0.0.1"
    port: int = 8321
    public_url: str = ""
    allow: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    workers: int = 1
    log: bool = False


class Server(uvicorn.Server):
    """Calls back when it accepts requests, and ends event streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, app: Starlette, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._state = app.state.shared
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._state.end_streams()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops without raising the signal again afterwards: a requested stop exits with status 0."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def tune_interpreter() -> None:
    """Shortens thread switches, and excludes the objects of the start from garbage collection."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # with this protocol asyncio sets TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise YourturnError(
            f"Cannot listen on {host}:{port}", reason=error.strerror or str(error), hint="Try another with --port."
        ) from None
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener


def run(options: Options, on_ready: Callable[[str], None]) -> int:
    """Serves until a signal comes. Calls `on_ready` with the server's URL once all worker processes accept requests."""
    address = server_address(options.host, options.public_url, bool(options.tls_cert), options.allow)
    for file in (options.tls_cert, options.tls_key):
        if file and not os.access(file, os.R_OK):
            raise Usage(f"Cannot read {file}")
    _check_tls(options)
    listener = listen(options.host, options.port)
    scheme = "https" if options.tls_cert else "http"
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = address.public_url or f"{scheme}://{host}:{listener.getsockname()[1]}"
    try:
        if options.workers == 1:
            return serve(options, listener, lambda: on_ready(url))
        return supervise(options, listener, lambda: on_ready(url))
    finally:
        listener.close()


def _check_tls(options: Options) -> None:
    """Fails before any worker process starts."""
    if not options.tls_cert:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key)
    except OSError:
        raise Usage(
            f"{options.tls_cert} and {options.tls_key} are not a certificate and its key",
            hint="Use the PEM format, and a key without a password.",
        ) from None


def uvicorn_config(app: Starlette, grace: int = GRACE, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app, http="httptools", ws="none", lifespan="on", log_config=None, access_log=False, proxy_headers=False,
        server_header=False, date_header=False, timeout_keep_alive=30, timeout_graceful_shutdown=grace, **more,
    )  # fmt: skip


def serve(options: Options, listener: socket.socket, on_started: Callable[[], None]) -> int:
    """Runs the server in this process."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO if options.log else logging.WARNING, format="%(asctime)s %(message)s"
    )
    address = server_address(options.host, options.public_url, bool(options.tls_cert), options.allow)
    app = create_app(options.database, address=address)
    config = uvicorn_config(app, ssl_certfile=options.tls_cert, ssl_keyfile=options.tls_key)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    logging.getLogger("mcp").setLevel(logging.WARNING)

    def started() -> None:
        tune_interpreter()
        on_started()

    server = Server(config, app, started)
    server.run(sockets=[listener])
    return 0 if server.started else 1


# --- worker processes -------------------------------------------------------------------------------------------------


def supervise(options: Options, listener: socket.socket, on_ready: Callable[[], None]) -> int:
    """Starts the worker processes and replaces those that die."""
    stopping = False
    workers: dict[int, float] = {}  #: when each process started

    def stop(*_: Any) -> None:
        nonlocal stopping
        stopping = True
        for pid in workers:
            _terminate(pid)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    read_end, write_end = os.pipe()  # each worker writes a byte when it accepts requests
    starting, failures = options.workers, 0  # workers that do not accept requests yet; workers that died before all did
    try:
        for _ in range(options.workers):
            _fork_worker(options, listener, write_end, workers)
        while workers:
            if starting > 0 and select.select([read_end], [], [], 0.1)[0]:
                starting -= len(os.read(read_end, 64))
                if starting <= 0 and not stopping:
                    on_ready()
            for pid in _exited(workers, block=starting <= 0):
                died_early = time.monotonic() - workers.pop(pid) < 1
                failures += starting > 0
                if stopping or failures > 3 * options.workers:
                    stop()
                    continue
                if died_early:
                    time.sleep(0.5)
                if not stopping:
                    _fork_worker(options, listener, write_end, workers)
    finally:
        os.close(read_end)
        os.close(write_end)
    return 0 if starting <= 0 or failures == 0 else 1


def _exited(workers: dict[int, float], block: bool) -> list[int]:
    """The worker that exited, if any; blocks until one does if there is nothing else to do."""
    pid, _ = os.waitpid(-1, 0 if block else os.WNOHANG)
    return [pid] if pid in workers else []


def _exit_with_parent(parent: int) -> None:
    """Stops this worker when the parent process is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def _fork_worker(options: Options, listener: socket.socket, write_end: int, workers: dict[int, float]) -> None:
    signals = {signal.SIGINT, signal.SIGTERM}
    # Blocked across fork(): a stop must not miss a worker that is not yet listed, nor run the parent's handler in the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent, pid = os.getpid(), os.fork()
    if pid:
        workers[pid] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return
    code = 1
    try:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
        code = serve(options, listener, lambda: _write_byte(write_end))
    except BaseException as error:
        log.critical("worker process exits: %s", error)
    finally:
        os._exit(code)


def _write_byte(pipe: int) -> None:
    os.write(pipe, b".")
