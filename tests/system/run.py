#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one system test file: run.py FILE [--volferry PATH] [-k PATTERN] [-v].

Prints each skipped test with its reason. Exit 0: passed; 1: failed; 77: every test was skipped.

At a signal or after --deadline seconds the running test fails, its cleanups (mounts, loop devices, servers) are done, and
no further test starts. Whoever calls it should let the deadline come before a kill that cannot be caught.
"""

import argparse
import importlib.util
import os
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def load(path: str):
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Interrupted(Exception):
    """The run has to end. An ordinary exception, since unittest skips cleanups after
    KeyboardInterrupt.
    """


class EndableRunner(unittest.TextTestRunner):
    """Stops after the current test once a signal has come."""

    def _makeResult(self):
        result = super()._makeResult()

        def end(number, _):
            for other in _ENDING:
                signal.signal(other, signal.SIG_IGN)
            result.stop()
            raise Interrupted(f"ended by {signal.Signals(number).name}")

        for number in _ENDING:
            signal.signal(number, end)
        return result


_ENDING = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument(
        "--volferry", help="the program under test (else the environment variable VOLFERRY)"
    )
    parser.add_argument(
        "-k", action="append", metavar="PATTERN", help="only tests whose name matches"
    )
    parser.add_argument(
        "--deadline", type=int, default=0, metavar="SECONDS", help="when to give up"
    )
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    if options.volferry:
        os.environ["VOLFERRY"] = os.path.abspath(options.volferry)

    loader = unittest.TestLoader()
    if options.k:
        loader.testNamePatterns = [p if "*" in p else f"*{p}*" for p in options.k]
    suite = loader.loadTestsFromModule(load(options.file))
    runner = EndableRunner(stream=sys.stdout, verbosity=2 if options.verbose else 1)
    signal.alarm(options.deadline)
    result = runner.run(suite)
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    if not result.wasSuccessful():
        return 1
    if result.testsRun == 0:
        print("no test matched")
        return 1
    return 77 if len(result.skipped) >= result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
