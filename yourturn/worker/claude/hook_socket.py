"""A Unix socket on which a worker answers the hooks of its agents.

A hook process lives for one tool call, and connecting to PostgreSQL takes longer than all the rest of it; the worker is connected
already. The request is one line of JSON, and so is the reply. Only the user who owns the socket can connect. Each socket is for
one agent, so requests need no identity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...core.errors import Invalid, StoreTrouble, YourturnError

#: How long one line may be, in bytes.
LIMIT = 16_000_000

Handle = Callable[[dict[str, Any]], dict[str, Any] | None]


def call(path: str, payload: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """The worker's reply to a hook's payload. OSError: there is no worker. YourturnError: the worker could not reply."""
    import socket  # late: most hooks end without a call, and it takes 6 ms

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(seconds)
        link.connect(path)
        try:
            link.sendall(json.dumps({"payload": payload}).encode() + b"\n")
            with link.makefile("rb") as lines:
                raw = lines.readline(LIMIT + 1)
            reply = json.loads(raw)
        except (OSError, ValueError, RecursionError) as trouble:
            raise StoreTrouble("The worker did not answer", reason=str(trouble) or type(trouble).__name__) from None
    if not isinstance(reply, dict) or "error" in reply:
        raise StoreTrouble("The worker could not say", reason=str(reply.get("error") if isinstance(reply, dict) else "")[:500])
    output: dict[str, Any] | None = reply.get("output")
    return output


@contextmanager
def serve(path: str | os.PathLike[str], handle: Handle) -> Iterator[str]:
    """Serve a socket at `path`, each request in a thread of its own."""
    import tempfile  # late: only a worker serves, and a hook starts 10 ms faster without
    import threading

    name = os.fspath(path)
    if len(os.fsencode(name)) > 100:
        raise Invalid(f"The path of a socket must be short: {name[:120]}", reason="the system allows about 100 bytes")
    folder = os.path.dirname(name) or "."  # noqa: PTH120
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as private:  # private until chmod
        server = _server(os.path.join(private, "s"), handle)  # noqa: PTH118
        os.chmod(os.path.join(private, "s"), 0o600)  # noqa: PTH101, PTH118
        os.replace(os.path.join(private, "s"), name)  # noqa: PTH105, PTH118
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="gate", daemon=True)
    thread.start()
    try:
        yield name
    finally:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        threading.Thread(target=_close, args=(server, thread), name="gate").start()  # shutdown takes up to poll_interval


def _close(server: Any, thread: Any) -> None:
    server.shutdown()
    server.server_close()
    thread.join()


def _server(path: str, handle: Handle) -> Any:
    from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

    class Request(StreamRequestHandler):
        timeout = 10  # for reading the request, not for handling it

        def handle(self) -> None:
            with suppress(OSError):  # the hook has gone
                self.wfile.write(json.dumps(_reply(self.rfile.readline(LIMIT + 1), handle)).encode() + b"\n")

    class Server(ThreadingUnixStreamServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore hooks that disconnect; socketserver would print a traceback."""

    return Server(path, Request)


def _reply(line: bytes, handle: Handle) -> dict[str, Any]:
    if len(line) > LIMIT:
        return {"error": f"the request is too long: at most {LIMIT:,} bytes"}
    try:
        payload = json.loads(line)["payload"]
        if not isinstance(payload, dict):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"error": "that is not a hook's request"}
    try:
        return {"output": handle(payload)}
    except YourturnError as error:
        return {"error": str(error)}
    except Exception as bug:  # the hook denies the call after any error
        return {"error": f"{type(bug).__name__} {bug}"}
