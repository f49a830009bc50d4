"""The command `turn`. Thin: reads words, says an action to the desk, prints what came of it."""
