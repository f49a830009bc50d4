"""One recipe for every transition of the table: (from, verb, to) -> a function that makes it happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yourturn.core.model import BLOCKED, CANCELLED, CREATED, DEFERRED, DONE, FAILED, HUMAN, READY, REVIEW, STATES, WORKING
from yourturn.core.rules import ASKABLE, OPEN

from .states import SCRIPT, Bench, key_of, number, row, said

Landing = tuple[str | None, str, str]
Recipe = Callable[[Bench], str]

#: Where a question can come from, and so lead back to.
BACK = (CREATED, READY, BLOCKED, WORKING, REVIEW)
ASIDE = (*BACK, DEFERRED)


def recipes() -> Iterator[tuple[Landing, Recipe]]:
    yield from _births()
    yield from _claims()
    yield from _questions()
    yield from _endings()
    yield from _shape()
    yield from _moves_of_desks()
    yield from _journals()


def _births() -> Iterator[tuple[Landing, Recipe]]:
    for state in (CREATED, READY, BLOCKED, HUMAN):
        yield (None, "create", state), lambda b, s=state: b.into(s)
    yield (CREATED, "vet", READY), lambda b: _then(b.created(), b.desk.vet)
    yield (CREATED, "vet", BLOCKED), lambda b: _then(b.created(depends_on=[b.ready()]), b.desk.vet)
    yield (READY, "unvet", CREATED), _too_large
    yield (READY, "block", BLOCKED), lambda b: _then(b.ready(), b.add_need)
    yield (BLOCKED, "unblock", READY), _unblock
    yield (BLOCKED, "parent", REVIEW), _container
    yield (BLOCKED, "parent", HUMAN), lambda b: _container(b, requires="approval")


def _with_review(b: Bench, policy: str, recipe: Callable[[], str]) -> str:
    b.desk.set("review", policy)
    key = recipe()
    b.desk.set("review", "ask")
    return key


def _accepted_by_silence(b: Bench) -> str:
    key = _with_review(b, "2h", b.review)
    b.clock.advance(hours=2)
    b.desk.reconcile()
    return key


def _too_large(b: Bench) -> str:
    key = b.ready()
    b.desk.update(key, complexity="xlarge")
    return key


def _claims() -> Iterator[tuple[Landing, Recipe]]:
    yield (READY, "claim", WORKING), lambda b: b.working()
    yield (WORKING, "heartbeat", WORKING), lambda b: _beat(b, b.working())
    yield (HUMAN, "heartbeat", HUMAN), lambda b: _beat(b, b.waiting(WORKING)[0])
    for verb, give_up in (("release", _release), ("expire", _expire), ("park", _park)):
        yield (WORKING, verb, READY), lambda b, g=give_up: g(b, b.working())
        yield (WORKING, verb, BLOCKED), lambda b, g=give_up: g(b, _needy(b, b.working()))
        if verb != "park":
            yield (WORKING, verb, HUMAN), lambda b, g=give_up: g(b, b.working(max_retries=1))
        if verb != "release":
            yield (HUMAN, verb, HUMAN), lambda b, g=give_up: g(b, b.waiting(WORKING, kind="approval")[0])
    yield (WORKING, "park", DEFERRED), lambda b: _park(b, b.working(), "2d")


def _questions() -> Iterator[tuple[Landing, Recipe]]:
    for state in ASKABLE:
        yield (state, "ask", HUMAN), lambda b, s=state: b.waiting(s)[0]
        yield (state, "ask", state), lambda b, s=state: b.asked_aside(s)[0]
        yield (state, "flag", HUMAN), lambda b, s=state: _then(b.into(s), lambda key: b.agent.flag(key, "Stuck here"))
    for state in (*ASKABLE, DEFERRED):
        yield (state, "assign", state), lambda b, s=state: _close(b.asked_aside, s, lambda q: b.desk.assign(q, "bob"))
    for state in OPEN:
        yield (state, "use", state), lambda b, s=state: _used(b, s)
    for state in BACK:
        yield (HUMAN, "answer", state), lambda b, s=state: _close(b.waiting, s, lambda q: b.desk.answer(q, "so"))
        yield (HUMAN, "withdraw", state), lambda b, s=state: _close(b.waiting, s, b.desk.withdraw)
        yield (HUMAN, "hand_back", state), lambda b, s=state: _then(b.waiting(s)[0], b.desk.hand_back)
        yield (HUMAN, "timeout", state), lambda b, s=state: _silence(b, s, "default", default="so")
    for state in ASIDE:
        yield (state, "answer", state), lambda b, s=state: _close(b.asked_aside, s, lambda q: b.desk.answer(q, "so"))
        yield (state, "withdraw", state), lambda b, s=state: _close(b.asked_aside, s, b.desk.withdraw)
    yield (HUMAN, "answer", HUMAN), lambda b: _one_of_two(b, lambda q: b.desk.answer(q, "so"))
    yield (HUMAN, "withdraw", HUMAN), lambda b: _one_of_two(b, b.desk.withdraw)
    yield (HUMAN, "withdraw", DONE), _last_withdrawn
    yield (HUMAN, "answer", DONE), lambda b: _then(b.ready(awaiting="approval"), b.desk.approve)
    yield (HUMAN, "answer", CANCELLED), lambda b: _then(b.ready(awaiting="input"), b.desk.reject)
    yield (HUMAN, "timeout", HUMAN), lambda b: _silence(b, READY, "remind")
    yield (HUMAN, "timeout", FAILED), lambda b: _silence(b, READY, "fail")
    yield (HUMAN, "timeout", DEFERRED), lambda b: _silence(b, READY, "defer")


def _endings() -> Iterator[tuple[Landing, Recipe]]:
    yield (HUMAN, "resolve", DONE), lambda b: _then(b.human(), b.desk.resolve)
    yield (WORKING, "complete", REVIEW), lambda b: b.review()
    yield (WORKING, "complete", HUMAN), lambda b: b.review(requires="approval")
    yield (WORKING, "complete", DONE), lambda b: b.review(workflow="feature.py")
    yield (REVIEW, "accept", DONE), lambda b: _with_review(b, "auto", b.review)
    yield (REVIEW, "timeout", DONE), _accepted_by_silence
    yield (REVIEW, "answer", DONE), lambda b: _then(b.review(), b.desk.accept)
    yield (REVIEW, "answer", READY), lambda b: _then(b.review(), b.desk.reject)
    yield (REVIEW, "answer", HUMAN), lambda b: _then(_container(b), b.desk.reject)
    yield (REVIEW, "answer", BLOCKED), lambda b: _then(_needy(b, b.review()), b.desk.reject)
    for state in (READY, WORKING, HUMAN):
        yield (state, "fail", FAILED), lambda b, s=state: _then(b.into(s), b.desk.fail)
    for state in (READY, WORKING, HUMAN, DEFERRED):
        yield (state, "stop", FAILED), lambda b, s=state: _then(b.into(s), b.desk.stop)
    for state in (*OPEN, FAILED):
        yield (state, "cancel", CANCELLED), lambda b, s=state: _then(b.into(s), b.desk.cancel)
        yield (state, "close", DONE), lambda b, s=state: _then(b.into(s), b.desk.close)
    for state in (CREATED, READY, BLOCKED):
        yield (state, "defer", DEFERRED), lambda b, s=state: _then(b.into(s), b.desk.defer)
        yield (DEFERRED, "wake", state), lambda b, s=state: _then(_then(b.into(s), b.desk.defer), b.desk.wake)
    for state, end in ((DONE, "close"), (FAILED, "fail")):
        yield (state, "reopen", READY), lambda b, s=state: _then(b.into(s), b.desk.reopen)
        yield (state, "reopen", BLOCKED), lambda b, e=end: _ended_needy(b, e)
    yield (CANCELLED, "reopen", CREATED), lambda b: _then(b.cancelled(), b.desk.reopen)


def _shape() -> Iterator[tuple[Landing, Recipe]]:
    for state in (CREATED, READY):
        yield (state, "decompose", BLOCKED), lambda b, s=state: _split(b, b.into(s))
    yield (WORKING, "decompose", BLOCKED), lambda b: _split(b, b.working())
    for state in STATES:
        yield (state, "note", state), lambda b, s=state: _then(b.into(s), lambda key: b.agent.note(key, "By the way"))
        yield (state, "update", state), lambda b, s=state: _then(b.into(s), lambda key: b.desk.update(key, title="T"))
    for state in OPEN:
        yield (state, "dep_add", state), lambda b, s=state: _then(b.into(s), b.add_need)
        yield (state, "dep_remove", state), lambda b, s=state: _freed(b, b.into(s))


def _moves_of_desks() -> Iterator[tuple[Landing, Recipe]]:
    for state in (READY, DEFERRED, DONE, FAILED, CANCELLED):
        yield (None, "import", state), lambda b, s=state: _brought(b, s)
    yield (None, "import", BLOCKED), lambda b: _brought(b, READY, depends_on=[number(b.desk, b.ready())])
    yield (None, "import", HUMAN), lambda b: _brought(b, READY, questions=[{"kind": "work"}])
    yield (None, "import", CREATED), _brought_to_be_vetted
    for state in (*BACK, DEFERRED):
        to = READY if state == WORKING else state
        yield (state, "fence", to), lambda b, s=state: _fenced(b, s)
    yield (WORKING, "fence", BLOCKED), lambda b: _then(_needy(b, b.working()), lambda _: b.desk.do("restore"))
    yield (HUMAN, "fence", HUMAN), lambda b: _then(b.waiting(WORKING)[0], lambda _: b.desk.do("restore"))


def _journals() -> Iterator[tuple[Landing, Recipe]]:
    yield (WORKING, "step", WORKING), lambda b: b.running(said("1"))
    yield (HUMAN, "step", HUMAN), lambda b: _write(b, _asking(b))
    yield (WORKING, "rewind", WORKING), lambda b: _rewind_own(b, b.running(said("1"), said("2")))
    for state in (CREATED, READY, BLOCKED):
        yield (state, "rewind", state), lambda b, s=state: _then(b.into(s, workflow=SCRIPT), lambda key: b.desk.rewind(key, 1))
        yield (HUMAN, "rewind", state), lambda b, s=state: _then(b.waiting(s, SCRIPT)[0], lambda key: b.desk.rewind(key, 2))
        yield (DEFERRED, "rewind", state), lambda b, s=state: _then(_asleep(b, s), b.desk.rewind)
    yield (FAILED, "rewind", READY), lambda b: _then(b.failed(workflow=SCRIPT), lambda key: b.desk.rewind(key, 1, spare=True))
    yield (FAILED, "rewind", BLOCKED), lambda b: _then(_failed_needy(b), b.desk.rewind)


# --- the moves ------------------------------------------------------------------------------------------------------


def _then(key: str, move: Callable[[str], object]) -> str:
    move(key)
    return key


def _brought(b: Bench, state: str, **fields: object) -> str:
    done = b.desk.do("import", title="from elsewhere", external_id=b.new_id(), state=state, project="PROJ", **fields)
    return key_of(b.desk, done.task)


def _brought_to_be_vetted(b: Bench) -> str:
    b.desk.set("vetting", True, "PROJ")
    try:
        return _brought(b, READY)
    finally:
        b.desk.set("vetting", False, "PROJ")


def _fenced(b: Bench, state: str) -> str:
    """A task in this state with a permission that was given; then the desk is restored."""
    key, asked = b.waiting(READY if state == DEFERRED else state, kind="permission")
    b.desk.approve(asked)
    if state == DEFERRED:
        b.desk.defer(key)
    b.desk.do("restore")
    return key


def _used(b: Bench, state: str) -> str:
    """A task in this state with a permission that was given; then it is used."""
    key, asked = b.waiting(READY if state in (HUMAN, DEFERRED) else state, kind="permission", action={"tool": "Bash"})
    b.desk.approve(asked)
    if state == HUMAN:
        b.ask(key, "And what else?")
    elif state == DEFERRED:
        b.desk.defer(key)
    b.agent.use(asked, "session/call", {"tool": "Bash"}, claim=b.claims.get(key))
    return key


def _unblock(b: Bench) -> str:
    need = b.ready()
    key = b.ready(depends_on=[need])
    b.desk.close(need)
    return key


def _container(b: Bench, **fields: str) -> str:
    epic = b.ready(type="epic", **fields)
    b.desk.close(b.ready(parent=epic))
    return epic


def _needy(b: Bench, key: str) -> str:
    b.add_need(key)
    return key


def _freed(b: Bench, key: str) -> str:
    """A ready task waits for nothing that is still open: it is freed from what is done."""
    need = b.done() if b.desk.show(key)["state"] == READY else b.ready()
    b.desk.depend(key, need)
    b.desk.undepend(key, need)
    return key


def _ended_needy(b: Bench, end: str) -> str:
    key = _needy(b, b.working())
    getattr(b.desk, end)(key)
    b.desk.reopen(key)
    return key


def _split(b: Bench, key: str) -> str:
    claim = b.claims.get(key)
    (b.agent if claim else b.desk).decompose(claim or key, ["a", "b"])
    return key


def _beat(b: Bench, key: str) -> str:
    before = row(b.desk, key)
    b.clock.advance(minutes=1)
    b.agent.heartbeat(b.claims[key])
    after = row(b.desk, key)
    assert after.lease_expires_at == (before.lease_expires_at or 0) + 60_000_000 and after.state == before.state
    return key


def _release(b: Bench, key: str) -> str:
    b.agent.release(b.claims[key])
    return key


def _expire(b: Bench, key: str) -> str:
    b.clock.advance(hours=2)
    b.desk.reconcile()
    return key


def _park(b: Bench, key: str, until: str | None = None) -> str:
    b.agent.park(b.claims[key], until)
    return key


def _asking(b: Bench) -> str:
    """A run whose script waits for a person while its session goes on."""
    key = b.running(said("1"))
    b.agent.flag(key, "Which?", claim=b.claims[key], steps=[said("2", "waiting")], step="2", hold=True)
    return key


def _write(b: Bench, key: str) -> str:
    b.agent.record(b.claims[key], [said("3")], program={"file": SCRIPT, "body": "go on"})
    return key


def _rewind_own(b: Bench, key: str) -> str:
    b.agent.rewind(key, 2, spare=True, claim=b.claims[key])
    return key


def _asleep(b: Bench, state: str) -> str:
    return _then(b.into(state, workflow=SCRIPT), b.desk.defer)


def _failed_needy(b: Bench) -> str:
    return _then(_needy(b, b.running(said("1"))), b.desk.fail)


def _close(bring: Callable[[str], tuple[str, str]], state: str, move: Callable[[str], object]) -> str:
    key, question = bring(state)
    move(question)
    return key


def _one_of_two(b: Bench, move: Callable[[str], object]) -> str:
    key, question = b.waiting(READY)
    b.ask(key, "And what else?")
    move(question)
    return key


def _last_withdrawn(b: Bench) -> str:
    key, gate = b.waiting(READY, kind="approval")
    other = b.ask(key, "And what else?")
    b.desk.approve(gate)
    b.desk.withdraw(other)
    return key


def _silence(b: Bench, state: str, on_timeout: str, **fields: str) -> str:
    key, _ = b.waiting(state, timeout="10m", on_timeout=on_timeout, **fields)
    b.clock.advance(minutes=11)
    b.desk.reconcile()
    return key
