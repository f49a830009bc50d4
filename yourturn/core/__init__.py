"""The law. Pure: no clock, no files, no database; imports nothing but the pure standard library."""
