"""procrastinate, a task queue on PostgreSQL: the peer of part (b), with as many jobs on the same server.

Its job does nothing. A worker takes one job at a time (concurrency 1) and commits twice for each: when it takes the job and when
it has finished it, as claim and complete do here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

_BATCH = 1000
#: Times of the jobs of a slice.
_RUN: list[float] = []


def installed() -> bool:
    return importlib.util.find_spec("procrastinate") is not None


def _app(address: str) -> tuple[Any, Any]:
    import procrastinate

    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=address, min_size=1, max_size=4))

    @app.task(name="job", queue="q")  # type: ignore[untyped-decorator]
    async def job(number: int) -> None:
        _RUN.append(time.monotonic())

    return app, job


def install(address: str) -> None:
    async def run() -> None:
        app, _ = _app(address)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(run())


def fill(address: str, count: int) -> None:
    async def run() -> None:
        app, job = _app(address)
        async with app.open_async():
            for first in range(0, count, _BATCH):
                await job.batch_defer_async(*[{"number": n} for n in range(first, min(first + _BATCH, count))])

    asyncio.run(run())


def work(address: str, orders: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    app, _ = _app(address)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.open_async().__aenter__())
    for order in orders():
        yield loop.run_until_complete(_slice(app, order["opens"], order["closes"]))
    loop.run_until_complete(app.close_async())
    loop.close()


async def _slice(app: Any, opens: float, closes: float) -> dict[str, Any]:
    """A worker that runs until `closes` and finishes its current job."""
    _RUN.clear()
    worker = asyncio.create_task(
        app.run_worker_async(queues=["q"], concurrency=1, wait=False, install_signal_handlers=False, update_heartbeat_interval=60)
    )
    await asyncio.wait([worker], timeout=closes - time.monotonic())
    if not worker.done():
        worker.cancel()
        await asyncio.wait([worker])
    return {"count": sum(opens <= at < closes for at in _RUN)}
