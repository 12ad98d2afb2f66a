# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/compare."""

import argparse
import os
import shutil
import tempfile

from . import ends, machine, workloads

REPOSITORY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
LEGS = ("local", "ssh", "tls")
PROGRAM_PLACES = ("build/release/cli/volferry", "build/ci/cli/volferry")


def _parser(description):
    parser = argparse.ArgumentParser(prog="bench/compare", description=description)
    parser.add_argument("--workload", default="default", metavar="W1,..",
                        help="keys or names, 'default' or 'all'; see --list")
    parser.add_argument("--leg", default=",".join(LEGS), metavar="local,ssh,tls")
    parser.add_argument("--runs", type=int, help="rounds; the median is shown (default 3; 1 below scale 0.1)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data (default 1.0)")
    parser.add_argument("--io", default="auto", metavar="auto,threads,uring",
                        help="volferry's I/O backends to run (default auto)")
    parser.add_argument("--volferry", metavar="PATH", help="the program; 'none' runs only the peers")
    parser.add_argument("--only", metavar="NAME,..", help="only these contenders")
    parser.add_argument("--tmp", default=tempfile.gettempdir(), help="where the data goes")
    parser.add_argument("--cold", action="store_true", help="drop the page cache before each run")
    parser.add_argument("--series", metavar="1,4,16",
                        help="also run at multiples of --scale and show how cost grows; without peers "
                             "unless --only names them")
    parser.add_argument("--limits", action=argparse.BooleanOptionalAction, default=None,
                        help="measure the machine's own limits too (default from scale 0.1 on)")
    parser.add_argument("--targets", action="store_true",
                        help="exit code 1 if a target of this program was not reached")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, no table")
    parser.add_argument("--list", action="store_true", help="show the workloads and end")
    return parser


def parse_arguments(description):
    """The options, checked. `chosen` are the workloads, `factors` what the scale is multiplied by."""
    parser = _parser(description)
    options = parser.parse_args()
    try:
        options.chosen = workloads.choose(options.workload)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        return options
    options.leg = options.leg.split(",")
    for leg in options.leg:
        if leg not in LEGS:
            parser.error(f"unknown leg '{leg}'; known: {', '.join(LEGS)}")
    if options.runs is None:
        options.runs = 3 if options.scale >= 0.1 else 1
    if options.limits is None:
        options.limits = options.scale >= 0.1
    if options.runs < 1 or not 0 < options.scale <= 64:
        parser.error("--runs must be at least 1 and --scale between 0 and 64")
    options.factors = _factors(parser, options)
    _check_room(parser, options)
    if options.cold and not machine.is_root():
        parser.error("--cold needs root: it writes /proc/sys/vm/drop_caches")
    options.volferry = _find_program(parser, options.volferry)
    return options


def _factors(parser, options):
    if not options.series:
        return [1.0]
    try:
        factors = sorted(float(word) for word in options.series.split(","))
    except ValueError:
        parser.error("--series takes numbers: 1,4,16")
    if factors[0] <= 0 or options.scale * factors[-1] > 64:
        parser.error("--series must be above 0 and stay below scale 64")
    return factors


def _check_room(parser, options):
    """Ends the program where the largest workload does not fit on the disk."""
    scale = options.scale * options.factors[-1]
    largest = max(options.chosen, key=lambda workload: ends.disk_need(workload, scale))
    need, free = ends.disk_need(largest, scale), shutil.disk_usage(options.tmp).free
    if need > free:
        parser.error(f"{largest.key} at scale {scale:g} needs {need / 2**30:.1f} GiB in {options.tmp}, where "
                     f"{free / 2**30:.1f} are free; give --tmp DIRECTORY or a smaller --scale")


def _find_program(parser, given):
    """Absolute path of the program under test, or None for peers only."""
    if given == "none":
        return None
    places = [given] if given else [os.path.join(REPOSITORY, place) for place in PROGRAM_PLACES]
    for place in places:
        if os.access(place, os.X_OK):
            return os.path.realpath(place)
    if not given and shutil.which("volferry"):
        return shutil.which("volferry")
    parser.error(f"no volferry at {', '.join(map(os.path.normpath, places))}; build it with "
                 "scripts/test, or give --volferry PATH (or 'none')")
