"""Functions that ask a person before they run."""
