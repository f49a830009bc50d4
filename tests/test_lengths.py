"""How long something takes, or how much of a time is left: one function, and each length in the words that a person would use."""

from __future__ import annotations

import pytest

from yourturn.display.terminal import countdown, length

HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "whole", "brief", "compact"),
    [
        (0, "0 s", "0 s", "0s"),
        (4.21, "4.2 s", "4 s", "4s"),
        (42, "42 s", "42 s", "42s"),
        (59.7, "1 min", "1 min", "1m"),
        (135, "2 min 15 s", "2 min", "2m 15s"),
        (HOUR - 0.1, "1 h", "1 h", "1h"),
        (80 * 60, "1 h 20 min", "1 h 20 min", "1h 20m"),
        (2 * HOUR - 1, "2 h", "2 h", "2h"),
        (3 * HOUR + 300, "3 h 5 min", "3 h", "3h 5m"),
        (2 * DAY - 1, "2 days", "2 days", "2d"),
        (2 * DAY + HOUR, "2 days 1 h", "2 days", "2d 1h"),
    ],
)
def test_a_length_is_rounded_to_what_it_shows(seconds, whole, brief, compact):
    assert (length(seconds), length(seconds, brief=True), length(seconds, compact=True)) == (whole, brief, compact)


def test_a_countdown_is_never_an_hour_short():
    assert countdown(2 * HOUR - 0.2) == "2 h"
    assert countdown(90 * 60) == "1 h 30 min"
    assert countdown(29 * 60 + 59.9) == "29:59"
