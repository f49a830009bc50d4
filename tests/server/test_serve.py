"""`turn serve` as real processes: output, shutdown, several processes and several servers on one database."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import uuid

import pytest

from tests.conftest import TURN
from tests.fixtures.server import Site
from yourturn.config import connect


class Process(Site):
    """A server in a process of its own."""

    def __init__(self, address: str, *words: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        command = [TURN, "--db", address, "serve", "--port", "0", "--json", "--as", "human:ana", *words]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.output = json.loads(self.process.stdout.readline())
        self.url = self.output["url"]
        self.port = int(self.url.rpartition(":")[2])
        self.desk = connect(address, as_="human:ana", project="PROJ", env={})
        self.tokens = {}

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(how)
        try:
            _, words = self.process.communicate(timeout=30)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.desk.close()
        return self.process.returncode, words


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, new_address):
    if request.param == "postgres":
        request.getfixturevalue("postgres_server")
    return new_address(request.param)


def test_serving_and_stopping(address):
    server = Process(address)
    try:
        stream = server.stream()
        assert stream.status == 200
        link = server.output["login"].removeprefix(server.url)
        assert server.get(link, role=None).status == 200
        entered = server.enter(link.rpartition("/")[2])
        assert entered.status == 303 and "set-cookie" in entered.headers
        assert server.get(link, role=None).status == 401, "once"
    finally:
        began = time.monotonic()
        code, words = server.stop()
    assert code == 0 and time.monotonic() - began < 8, words
    while stream.next() is not None:
        pass
    stream.close()


def test_several_processes_are_one_server(new_address, postgres_server):
    server = Process(new_address("postgres"), "--workers", "3")
    try:
        key = server.desk.create("A")["key"]
        watchers = [server.stream(f"?task={key}&only=note") for _ in range(6)]
        for at in range(12):
            assert server.post(f"/api/tasks/{key}/note", {"text": str(at)}).status == 200
        for watcher in watchers:
            events = watcher.take(12)
            assert [data["data"]["notes"][0]["text"] for _, _, data in events] == [str(at) for at in range(12)]
            watcher.close()
        session = server.desk.use_link(server.desk.create_link()["link"])["session"]
        cookie = {"Cookie": f"yourturn={session}"}
        assert {server.get("/api/me", role=None, headers=cookie).status for _ in range(8)} == {200}
        server.desk.logout(session)
        assert {server.get("/api/me", role=None, headers=cookie).status for _ in range(8)} == {401}
        server.desk.set("question_rate", 5)
        body = {"text": "x", "blocking": False, "default": "y"}
        statuses = [server.post(f"/api/tasks/{key}/questions", body, role="agent").status for _ in range(9)]
        assert statuses == [201] * 5 + [429] * 4
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, text=True
        ).stdout.split()
        assert len(children) == 3
        os.kill(int(children[0]), signal.SIGKILL)
        assert {server.get("/healthz", role=None).status for _ in range(10)} == {200}, "the other processes continue"
    finally:
        code, words = server.stop()
    assert code == 0, words


def test_several_servers_on_one_database(address):
    first = Process(address)
    second = Process(address)
    try:
        second.tokens = first.tokens
        key = first.desk.create("A")["key"]
        stream = second.stream(f"?task={key}&only=note")
        first.post(f"/api/tasks/{key}/note", {"text": "from the other"})
        event = stream.take(1)[0]
        assert event[2]["data"]["notes"][0]["text"] == "from the other"
        stream.close()
        again = first.stream(f"?task={key}&only=note", last=event[0])
        second.post(f"/api/tasks/{key}/note", {"text": "and back"})
        assert again.take(1)[0][2]["data"]["notes"][0]["text"] == "and back", "cursors are valid on every server"
        again.close()
        once = {"Idempotency-Key": uuid.uuid4().hex}
        keys = [server.post("/api/tasks", {"title": "Once"}, headers=once).json["key"] for server in (first, second)]
        assert keys[0] == keys[1]
    finally:
        codes = [first.stop()[0], second.stop(signal.SIGINT)[0]]
    assert codes == [0, 0]


def turn(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    return subprocess.run([TURN, *words], env=base | env, capture_output=True, text=True, timeout=60)


def test_serve_refuses_invalid_options(tmp_path, sqlite_site):
    address = sqlite_site.address
    taken = turn("--db", address, "serve", "--port", str(sqlite_site.port))
    assert taken.returncode == 1 and "Cannot listen on" in taken.stderr and "--port" in taken.stderr
    assert turn("--db", str(tmp_path / "none.db"), "serve").returncode == 3
    assert turn("--db", address, "serve", "--port", "99999").returncode == 2
    assert turn("--db", address, "serve", "--workers", "0").returncode == 2
    assert turn("--db", address, "serve", "--tls-cert", "x").returncode == 2
    assert turn("--db", address, "serve", "--public-url", "nonsense").returncode == 2
    assert turn("--db", address, "serve", YOURTURN_AGENT="coder").returncode == 5
    assert "Traceback" not in taken.stderr


def test_other_commands_do_not_load_a_web_server():
    code = "import sys; from yourturn.cli import main; main.main(['help']); sys.exit(any(m in sys.modules for m in ('uvicorn', 'starlette', 'anyio', 'http.client')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for localhost and 127.0.0.1."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    where = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *where, *about], check=True, capture_output=True)
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def test_serving_over_tls(new_address, certificate):
    """A page, a call and a stream with a trusted certificate, and a refusal without it."""
    cert, key = map(str, certificate)
    server = Process(new_address("sqlite"), "--tls-cert", cert, "--tls-key", key)
    trusted = ssl.create_default_context(cafile=cert)

    def line(context: ssl.SSLContext = trusted) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=context)

    def call(method: str, path: str, body: str | None = None, **headers: str) -> http.client.HTTPResponse:
        asked = line()
        asked.request(method, path, body, headers)
        return asked.getresponse()

    try:
        assert server.url == f"https://127.0.0.1:{server.port}"
        with pytest.raises(ssl.SSLCertVerificationError):
            line(ssl.create_default_context()).request("GET", "/healthz")
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}
        entered = call("POST", "/enter", f"link={server.output['login'].rpartition('/')[2]}", **form)
        cookie = str(entered.getheader("set-cookie"))
        assert entered.status == 303 and cookie.startswith("__Host-yourturn=ys_")
        assert "; Secure" in cookie and "Path=/" in cookie and "Domain" not in cookie
        secret = cookie.partition(";")[0]
        inbox = call("GET", "/inbox", Cookie=secret, Accept="text/html")
        assert inbox.status == 200 and "max-age" in str(inbox.getheader("strict-transport-security"))
        assert b"not your turn" in inbox.read()
        other = secret.replace("__Host-", "")
        assert call("GET", "/inbox", Cookie=other, Accept="text/html").status == 303, (
            "only a cookie that is bound to https counts"
        )
        bearer = {"Authorization": f"Bearer {server.token('admin')}"}
        stream = call("GET", "/api/events?only=create", **bearer)
        assert stream.status == 200 and stream.getheader("content-encoding") is None
        created = call("POST", "/api/tasks", '{"title": "Over TLS"}', **bearer, **{"Content-Type": "application/json"})
        assert created.status == 201 and json.loads(created.read())["title"] == "Over TLS"
        while not (received := stream.readline()).startswith(b"data: "):
            assert received, "the stream ended"
        assert b"Over TLS" in received or b"PROJ-1" in received
        env = {
            "PATH": os.environ["PATH"],
            "YOURTURN_URL": server.url,
            "YOURTURN_TOKEN": server.token("admin"),
            "SSL_CERT_FILE": cert,
        }
        result = subprocess.run([TURN, "list", "--json"], env=env, capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and "Over TLS" in result.stdout, result.stderr
    finally:
        code, words = server.stop()
    assert (code, words) == (0, "")
