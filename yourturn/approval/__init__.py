"""Functions that ask a person for approval before they run."""
