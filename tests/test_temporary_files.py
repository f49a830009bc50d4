"""Temporary files are kept in memory where that is possible, and on the disk where it is not."""

from __future__ import annotations

import os
import tempfile
from types import SimpleNamespace

import pytest

from tests import temporary_files


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", "")
    monkeypatch.delenv("TMPDIR")
    return tmp_path


def test_memory_is_used_and_what_the_dead_left_there_is_taken_away(nowhere):
    for name in ("yt-999999999", "yt-1", "yt-mine"):
        (nowhere / name).mkdir()
    folder = temporary_files.into_memory(nowhere, 0)
    assert folder == nowhere / f"yt-{os.getpid()}"
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(folder)
    assert sorted(path.name for path in nowhere.iterdir()) == sorted(["yt-1", "yt-mine", folder.name])


def test_memory_is_left_alone_where_it_is_short_or_another_place_was_named(nowhere, monkeypatch):
    assert temporary_files.into_memory(nowhere, 2**70) is None
    assert temporary_files.into_memory(nowhere / "missing", 0) is None
    with monkeypatch.context() as here:
        found = os.statvfs(nowhere)
        barred = SimpleNamespace(f_bavail=found.f_bavail, f_frsize=found.f_frsize, f_flag=found.f_flag | os.ST_NOEXEC)
        here.setattr(os, "statvfs", lambda _: barred)
        assert temporary_files.into_memory(nowhere, 0) is None
    monkeypatch.setenv("TMPDIR", str(nowhere))
    assert temporary_files.into_memory(nowhere, 0) is None
    assert list(nowhere.iterdir()) == []
