"""Checks of a desk: `turn doctor` and `turn audit`."""
