"""Check what every backend promises, for yours too. It needs pytest.

    from deepagents.testing.contract import BackendContract

    class TestMyBackend(BackendContract):
        def make_backend(self):
            return MyBackend()

Each check runs on a new backend, once blocking and once awaiting. What a backend does not claim in
`capabilities()` is skipped. A backend that works only in certain surroundings, such as a graph run, overrides
`run` and `arun`.
"""

from deepagents.testing.contract import _assertions as _assertions
from deepagents.testing.contract.allowing import AllowingContract
from deepagents.testing.contract.base import Called
from deepagents.testing.contract.changing import AppendingContract, ChangingContract
from deepagents.testing.contract.editing import EditingContract
from deepagents.testing.contract.naming import NamingContract
from deepagents.testing.contract.reading import ReadingContract
from deepagents.testing.contract.searching import SearchingContract


class BackendContract(
    ReadingContract,
    ChangingContract,
    AppendingContract,
    EditingContract,
    SearchingContract,
    NamingContract,
    AllowingContract,
):
    """Everything that a backend promises. Subclass it as `Test...` and say how to make a backend."""


__all__ = ["BackendContract", "Called"]
