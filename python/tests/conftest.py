"""``--device=NAME`` runs the tests with another default device.

A test that needs what that device has not is skipped, with the device's own sentence; of more such tests than
``REFUSED`` says the run fails.
"""

import pytest

import invar as iv
from invar import _launch

#: How many tests a device may refuse: GPUs have not every kernel's types and orders of atomics, and processors have
#: simdgroups of 32 threads.
REFUSED = {"cpu": 12, "gpu": 72}

LACKS = ("unsupported-feature", "unsupported-memory-order", "unsupported-float-mode")


def pytest_addoption(parser):
    parser.addoption("--device", default="default", help="the device that launches take")


def pytest_configure(config):
    config.addinivalue_line("markers", "large: kernels that lavapipe compiles for minutes")
    config.refused = 0
    _launch._known["default"] = iv.device(config.getoption("--device"))


def pytest_report_header():
    return f"default device: {iv.device().name}"


def pytest_runtest_setup(item):
    if item.get_closest_marker("large") and "llvmpipe" in repr(iv.device()):
        pytest.skip("lavapipe compiles its kernels for minutes")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except iv.ReportError as e:
        if iv.device().name != "checked" and e.findings and e.findings[0].rule in LACKS:
            item.config.refused += 1
            pytest.skip(e.findings[0].message)
        raise


def pytest_sessionfinish(session):
    most = REFUSED.get(iv.device().name, 0)
    if session.config.refused > most:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    most = REFUSED.get(iv.device().name, 0)
    if config.refused > most:
        terminalreporter.write_line(f"{iv.device().name} refused {config.refused} tests, more than {most}", red=True)
