"""All that a change needs, imported when the first one is made.

`law.decide(…)`, `law.due(…)`, `law.say(…)` are the functions of their modules. Most commands only look, and a look
that does not load the tables starts 10 ms sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .actions import say as say
    from .canonical_json import claim_hash as claim_hash
    from .canonical_json import digest as digest
    from .canonical_json import secret_hash as secret_hash
    from .decide import decide as decide
    from .decide import due as due
    from .decide import held_last as held_last
    from .decide import holds as holds
    from .decide import may_ever as may_ever
    from .permissions import check as check
    from .permissions import check_scope as check_scope
    from .permissions import in_scope as in_scope
    from .permissions import scopes_of as scopes_of
    from .rules import ASKING as ASKING
    from .rules import OFFICE as OFFICE
    from .rules import ROLES as ROLES
    from .step_paths import place as place

_HOME = {
    "say": "actions", "place": "places", "claim_hash": "canon", "digest": "canon", "secret_hash": "canon", "OFFICE": "rules",
    "ASKING": "rules", "ROLES": "rules", "check": "access", "check_scope": "access", "in_scope": "access", "scopes_of": "access",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = getattr(import_module(f".{_HOME.get(name, 'decide')}", __package__), name)
    return found
