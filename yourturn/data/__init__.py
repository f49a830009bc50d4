"""Data in and out: the archive of a desk, restore, and imports from other trackers."""
