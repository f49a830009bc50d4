from tests.flow.conftest import stage

__all__ = ["stage"]
