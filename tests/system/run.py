#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one system test file: run.py FILE [--volferry PATH] [-k PATTERN] [-v].

Prints each skipped test with its reason. Exit 0: passed; 1: failed; 77: every test was skipped.
"""

import argparse
import importlib.util
import os
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--volferry", help="the program under test (else the environment variable VOLFERRY)")
    parser.add_argument("-k", action="append", metavar="PATTERN", help="only tests whose name matches")
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
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if options.verbose else 1).run(suite)
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
