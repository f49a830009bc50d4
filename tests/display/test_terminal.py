"""Widths of a terminal."""

from __future__ import annotations

import os
import pty
import sys
import termios

import pytest

from yourturn.display.terminal import width


@pytest.mark.parametrize(("reported", "columns"), [(0, 80), (72, 72)])
def test_terminal_without_a_size_has_80_columns(monkeypatch, reported, columns):
    main, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "w") as output:
            if reported:
                termios.tcsetwinsize(terminal, (24, reported))
            monkeypatch.setattr(sys, "stdout", output)
            assert width() == columns
    finally:
        os.close(main)


def test_output_that_is_no_terminal_is_not_cut(monkeypatch, tmp_path):
    with (tmp_path / "output").open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert width() == 10_000
