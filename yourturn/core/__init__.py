"""The rules and the functions that apply them. Pure: no clock, no files, no database, no third-party imports."""
