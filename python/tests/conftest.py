"""``--device=NAME`` runs the tests with another default device.

A test that needs what that device has not is skipped, with the device's own sentence.
"""

import pytest

import invar as iv
from invar import _launch

LACKS = ("unsupported-feature", "unsupported-memory-order", "unsupported-float-mode")


def pytest_addoption(parser):
    parser.addoption("--device", default="default", help="the device that launches take")


def pytest_configure(config):
    config.addinivalue_line("markers", "large: kernels that lavapipe compiles for minutes")
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
            pytest.skip(e.findings[0].message)
        raise
