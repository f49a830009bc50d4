"""The signal file is read once, without blocking, and up to a limit, whatever is at its path."""

from __future__ import annotations

import os

import pytest

from yourturn.worker.signals.outcomes import LIMIT, from_file
from yourturn.worker.signals.signal_file import SignalFile

SAID = b'{"status": "COMPLETE"}'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "coder.json"


def test_signal_file_is_read_once(path):
    signal = SignalFile(path)
    assert signal.read() is None
    path.write_bytes(SAID)
    assert signal.read() == SAID
    assert signal.read() is None and not path.exists()


def test_old_signal_file_is_ignored(path):
    path.write_bytes(SAID)
    assert SignalFile(path).read() is None


def test_a_pipe_does_not_block(path):
    signal = SignalFile(path)
    os.mkfifo(path)
    assert signal.read() is None


def test_folder_is_not_read(path):
    signal = SignalFile(path)
    path.mkdir()
    assert signal.read() is None


def test_a_huge_file_is_not_read_to_its_end(path):
    signal = SignalFile(path)
    path.touch()
    os.truncate(path, 2**33)
    data = signal.read()
    assert data is not None and len(data) == LIMIT + 1
    assert "too long" in from_file(data).text
