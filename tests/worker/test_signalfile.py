"""The file in which an agent says how its turn ended: whatever lies there, it is read at once, once, and not too far."""

from __future__ import annotations

import os

import pytest

from yourturn.worker.signals.outcomes import LIMIT, from_file
from yourturn.worker.signals.signal_file import SignalFile

SAID = b'{"status": "COMPLETE"}'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "coder.json"


def test_what_was_written_during_the_turn_is_read_once(path):
    signal = SignalFile(path)
    assert signal.read() is None
    path.write_bytes(SAID)
    assert signal.read() == SAID
    assert signal.read() is None and not path.exists()


def test_what_lay_there_before_says_nothing(path):
    path.write_bytes(SAID)
    assert SignalFile(path).read() is None


def test_a_pipe_holds_nobody_up(path):
    signal = SignalFile(path)
    os.mkfifo(path)
    assert signal.read() is None


def test_a_folder_is_no_signal(path):
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
