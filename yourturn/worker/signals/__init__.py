"""Signals: how an agent ends its turn, in a message or a file."""
