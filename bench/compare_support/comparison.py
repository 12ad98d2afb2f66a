# SPDX-License-Identifier: Apache-2.0
"""The measured runs: each workload's data is made once, then every contender runs on it in turns, and each
result is compared with the source."""

import json
import os
import subprocess
import sys
import time

from . import contender, machine
from .ends import make_ends
from .services import Services

HERE = os.path.dirname(os.path.realpath(__file__))
RUN_LIMIT_S = 900


class Comparison:
    """All runs of one invocation. `rows` holds one dict a run, `facts` one a workload and factor."""

    def __init__(self, options, base, own_namespaces):
        self._options = options
        self._base = base
        self._own = own_namespaces
        self._ports = machine.Ports()
        self._services = Services(base)
        self.counter = machine.WireCounter(own_namespaces)
        self.rows = []
        self.facts = []

    def run(self, everybody, factor):
        """Every chosen workload at the chosen scale times `factor`."""
        for workload in self._options.chosen:
            present = [item for item in everybody if item.applies(workload)]
            if present and "device" in workload.traits and not machine.is_root():
                note(f"left out: {workload.key}: block devices need root")
            elif present:
                self._workload(workload, present, factor)

    def _workload(self, workload, present, factor):
        scale = self._options.scale * factor
        note(f"{workload.key} {workload.title}, scale {scale:g}: making data")
        ends = make_ends(workload, scale, self._base, self._own)
        try:
            self.facts.append({"workload": workload.key, "factor": factor} | ends.facts)
            for round_number in range(self._options.runs):
                shift = round_number % len(present)
                for item in present[shift:] + present[:shift]:
                    row = self._one(workload, item, ends, scale)
                    row |= {"round": round_number, "factor": factor}
                    self.rows.append(row)
                    note(f"  {workload.key} {item.leg:5} {item.name:27} round {round_number + 1} " +
                         (f"{row['wall_s']:.3f} s" if not row["error"]
                          else f"FAILED: {row['error'].strip()}"))
        finally:
            ends.close()

    def _one(self, workload, item, ends, scale):
        ends.reset()
        job = contender.Job(workload, ends.new, ends.destination, self._ports, self._services)
        plan = item.plan(job)
        space = max(workload.space(scale), ends.facts["bytes"])
        request = {"servers": plan.servers, "steps": plan.steps, "cold": self._options.cold,
                   "prefault": prefault_size(space), "timeout": RUN_LIMIT_S,
                   "cwd": self._services.base}
        self.counter.reset()
        result = measured(request)
        counted = self.counter.read() if item.leg != "local" else None
        before = time.perf_counter()
        ends.settle()
        settle = time.perf_counter() - before
        row = {"workload": workload.key, "leg": item.leg, "contender": item.name,
               "peer": item.is_peer, "durable": item.durable,
               "wall_s": result["wall_s"], "step_s": result["step_s"],
               "cpu_s": result["user_s"] + result["system_s"], "user_s": result["user_s"],
               "system_s": result["system_s"], "settle_s": settle,
               "peak_mib": result["peak_kib"] / 1024,
               "wire_up": counted["up"] if counted else None,
               "wire_down": counted["down"] if counted else None,
               "error": failure(result)}
        if not item.is_peer:
            add_own_summary(row, result["stdout"], counted is None and item.leg != "local")
        if not row["error"]:
            found = ends.differences(item.ignore)
            if found:
                row["error"] = "destination differs: " + ", ".join(found)
        return row


def measured(request):
    """Runs one request in the small runner process."""
    runner = os.path.join(HERE, "runner.py")
    with subprocess.Popen([sys.executable, "-I", "-S", runner], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate(json.dumps(request))
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        raise RuntimeError(f"the runner ended with {process.returncode}")
    return json.loads(output)


def failure(result):
    """One text that says why a run does not count, or None."""
    if result["error"]:
        return result["error"]
    if result["exit_code"] != 0:
        output = (result["stderr"] or result["stdout"])[-400:]
        return f"exit code {result['exit_code']}: {output} {' '.join(result['server_stderr'])[-200:]}"
    return None


def add_own_summary(row, stdout, use_for_wire):
    """Takes over volferry's summary line; its wire figures where nothing else counts the bytes."""
    for line in reversed(stdout.splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "summary":
            row["summary"] = event
            if use_for_wire:
                row["wire_up"], row["wire_down"] = event.get("wire_sent"), event.get("wire_received")
            return


def prefault_size(space):
    """Both copies of the data and a reserve, at most half of what is available."""
    reserve = min(256 << 20, space)
    return int(min(2.2 * space + reserve, machine.available_memory() / 2, 6 << 30))


def note(text):
    print(text, file=sys.stderr, flush=True)
