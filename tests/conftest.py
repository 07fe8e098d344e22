"""Shared fixtures."""

import os

import pytest
from hypothesis import HealthCheck, settings
from tools.kills import looked_up

from benchmarks import datasets
from vertimrf.files.state import STATE
from vertimrf.kernels.jit import threads
from vertimrf.kernels.warm import compile_missing, missing
from vertimrf.plan import plan
from vertimrf.privacy import accountant, ledger
from vertimrf.releases.shared_keys import parameters

# The first example may compile kernels, and a busy machine is slow at any: time is no reason to fail an example.
settings.register_profile("vertimrf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vertimrf")


def pytest_configure(config):
    """Before ``-n`` starts processes: compile the kernels once for all of them; each process has one core."""
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    # Libraries of linear algebra and of trees read these as they load.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    compile_missing(missing())


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory):
    """The folder of this machine's records of releases, which are found by keys that every test draws anew."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(STATE, str(folder))
        yield folder


@pytest.fixture
def somebody_else(monkeypatch):
    """Gives a file or folder to another user. Only root can: for others, this user is another one than he was."""
    me = os.geteuid()

    def give(path):
        if me:
            monkeypatch.setattr(os, "geteuid", lambda: me + 1)
        else:
            os.chown(path, 2, -1)

    return give


@pytest.fixture(autouse=True, scope="session")
def one_core(request):
    """With ``-n`` a process has one core, where threads only wait for each other; tests of threads ask for some."""
    with threads(1 if hasattr(request.config, "workerinput") else None):
        yield


@pytest.fixture(autouse=True, scope="session")
def prices():
    """What plans and ledgers ask of the accountant is computed once; tests of the accountant ask it themselves."""
    epsilon = looked_up(accountant.epsilon)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accountant, "epsilon", epsilon)
        for module in (ledger, parameters, plan):
            patch.setattr(module, "composed_epsilon", epsilon)
        for name in ("cumulative", "group_epsilon"):
            patch.setattr(ledger, name, looked_up(getattr(ledger, name)))
        yield


@pytest.fixture(scope="session")
def paper_data():
    """The folder with the paper's data sets, beside the checkout; tests that need it skip elsewhere."""
    if not datasets.FOLDER.is_dir():
        pytest.skip("the paper's data sets are not beside this checkout")
    return datasets.FOLDER
