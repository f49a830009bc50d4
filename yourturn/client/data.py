"""Export, import and backup."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from .refs import ClientBase, needs_database


class Data(ClientBase):
    @needs_database
    def export(self, file: str | IO[str], *, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Export everything but secrets, as JSON lines, to a file (compressed if its name ends in .gz) or an open stream."""
        from ..data import archive

        path = file if isinstance(file, str) else None
        stream = None if isinstance(file, str) else file
        count = archive.export(self.desk.store, self.who, stream, path, progress)
        return {"file": path, "rows": count}

    @needs_database
    def import_(
        self,
        source: str,
        *,
        from_: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Import an export, or the tasks of ticks, beehive or beads, in one transaction."""
        from ..data import archive, task_import

        if from_ is None and archive.file_type(source) == "export":
            return archive.import_archive(self.desk, source, dry_run, progress)
        return task_import.import_tasks(self.desk, source, from_, project or self.project, dry_run)

    @needs_database
    def backup(self, file: str, *, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Copy the whole database, with its secrets, while it is in use."""
        from ..data import archive

        return archive.backup(self.desk.store, self.who, file, progress)
