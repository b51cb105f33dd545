"""Stands for `adaexplore optimize`: writes the same events, does no work.

`fake_search.py BEHAVIOUR optimize FILE::NAME --json …`
"""

import json
import os
import signal
import subprocess
import sys
import time


def say(event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def log(text):
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


ENVIRONMENT = {"python": "3.11", "torch": "2.13", "triton": "3.6", "gpu": "NVIDIA H200"}
CORRECTNESS = {
    "how": "gpu", "trials": 4, "relative_error": 1e-7, "max_error": 1e-6, "eager_relative_error": 1e-7,
    "eager_max_error": 1e-6,
}  # fmt: skip
EVALUATION = {
    "status": "passed", "stage": "measure", "correctness": CORRECTNESS, "environment": ENVIRONMENT,
    "measurement": {
        "candidate": {"median_ms": 1.0, "low_ms": 0.9, "high_ms": 1.1, "runs": 10},
        "eager": {"median_ms": 2.3, "low_ms": 2.2, "high_ms": 2.4, "runs": 10},
        "compiled": {"median_ms": 1.2, "low_ms": 1.1, "high_ms": 1.3, "runs": 10},
    },
}  # fmt: skip
BEST = {"id": "c1", "source": "def triton_forward(module, x): ...", "proposer": "builtin", "kind": "large"}


def started(path, name, steps):
    say({
        "event": "run_started", "run_id": "r1", "path": path, "class_name": name, "policy": "user",
        "workload": "shapes in the # adaexplore: comment", "shapes": "x=float32[8, 64]", "operators": 5,
        "steps": steps, "environment": ENVIRONMENT,
    })  # fmt: skip


def evaluated(step, steps, best):
    say({
        "event": "step_evaluated", "run_id": "r1", "step": step, "steps": steps, "kind": "large",
        "candidate_id": f"c{step}", "summary": "one row a program", "status": "passed", "stage": "measure",
        "detail": "", "latency_ms": 1.0, "speedup": best, "best_speedup": best, "best_candidate_id": "c1",
    })  # fmt: skip


def finished(outcome, steps, best=True):
    say({
        "event": "run_finished", "run_id": "r1", "outcome": outcome, "message": f"outcome {outcome}", "steps": steps,
        "seconds": 1.0, "best": BEST if best else None, "evaluation": EVALUATION if best else None,
    })  # fmt: skip


def refuse(path, name):
    say({
        "event": "run_failed", "error": "UnsupportedOperatorError", "message": f"{path}:3: aten.sort is not supported",
        "hint": "Leave it out.", "exit_code": 1,
    })  # fmt: skip
    sys.exit(1)


def nothing(path, name):
    sys.exit(3)


def success(path, name):
    started(path, name, 3)
    for step in (1, 2, 3):
        evaluated(step, 3, 1.0 + step / 10)
        time.sleep(0.05)
    finished("improved", 3)


def arguments(path, name):
    started(path, name, 3)
    log(json.dumps(sys.argv[2:]))
    log(os.environ.get("ADAEXPLORE_DATA_DIR"))  # noqa: TID251 - what the server handed on
    finished("nothing_better", 3, best=False)


def flood(path, name):
    started(path, name, 5000)
    sys.stdout.write("not an event\n")
    for step in range(1, 5001):
        evaluated(step, 5000, 1.5)
    finished("improved", 5000)


def hang(path, name):
    started(path, name, 3)
    evaluated(1, 3, 1.8)
    while True:
        time.sleep(0.05)


def interruptible(path, name):
    try:
        hang(path, name)
    except KeyboardInterrupt:
        time.sleep(0.3)  # a second interrupt would end it here, without a result
        finished("cancelled", 1)


def stubborn(path, name):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    log(child.pid)
    hang(path, name)


def die(path, name):
    started(path, name, 3)
    evaluated(1, 3, 1.8)
    os.kill(os.getpid(), signal.SIGKILL)


def cut(path, name):
    started(path, name, 3)
    sys.stdout.write('{"event": "step_eval')
    sys.stdout.flush()
    sys.exit(1)


log("the log")
BEHAVIOURS = (refuse, nothing, success, arguments, flood, hang, interruptible, stubborn, die, cut)
{behaviour.__name__: behaviour for behaviour in BEHAVIOURS}[sys.argv[1]](*sys.argv[3].split("::"))
