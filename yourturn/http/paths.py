"""From a path to whom it belongs: one look into a dictionary, or a few comparisons, however many routes there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: What a segment must be, or the name of what it stands for.
Pattern = tuple[tuple[str, str], ...]


class Paths:
    def __init__(self, routes: Iterable[tuple[str, Any]]) -> None:
        """A path may have {names}, each for a whole segment. Of two that fit, the earlier one counts."""
        self._exact: dict[str, Any] = {}
        self._patterns: dict[int, list[tuple[Pattern, Any]]] = {}
        for path, app in routes:
            if "{" not in path:
                self._exact.setdefault(path, app)
                continue
            parts = tuple(("", part[1:-1]) if part.startswith("{") else (part, "") for part in path.split("/"))
            self._patterns.setdefault(len(parts), []).append((parts, app))

    def find(self, path: str) -> tuple[Any, dict[str, str]] | None:
        app = self._exact.get(path)
        if app is not None:
            return app, {}
        segments = path.split("/")
        for pattern, app in self._patterns.get(len(segments), ()):
            for (word, name), segment in zip(pattern, segments, strict=True):
                if not segment if name else segment != word:
                    break
            else:
                return app, {name: segment for (_, name), segment in zip(pattern, segments, strict=True) if name}
        return None
