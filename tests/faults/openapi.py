"""Section `openapi`: requests generated from the OpenAPI document, valid and invalid, against a server as each role.

A violation is a status of 500 or more, an answer that the document does not know, or a bug in the server's log.
"""

from __future__ import annotations

import logging

from tests.api.openapi_fuzz import EVERYBODY, play
from tests.fixtures.server import Site
from yourturn.config import init

from . import Place, Tally

EXAMPLES = 40


class _Bugs(logging.Handler):
    def __init__(self, tally: Tally) -> None:
        super().__init__(logging.ERROR)
        self.tally = tally

    def emit(self, record: logging.LogRecord) -> None:
        why = record.exc_info[1] if record.exc_info else None
        self.tally.violations.append(f"{record.getMessage()}: {type(why).__name__}: {why}")


def run(place: Place) -> Tally:
    tally, address = Tally(), place.new_db()
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    heard, log = _Bugs(tally), logging.getLogger("yourturn.http")
    log.addHandler(heard)
    site = Site(address)
    try:
        for role in EVERYBODY:
            try:
                seen = play(site, role, examples=max(1, round(EXAMPLES * place.scale)), chance=place.seed)
                tally.runs += sum(seen.values())
            except (Exception, BaseExceptionGroup) as found:  # several at once are no Exception
                tally.violations.append(f"as {role}: {str(found)[:2000]}")
    finally:
        site.close()
        log.removeHandler(heard)
    return tally
