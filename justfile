# The same lines that CI runs. `just` alone lists them.

_list:
    @just --list --unsorted

# All that must hold before a commit: lint, types, import contracts, generated files, tests without a GPU.
check: lint types imports gen-check test

# Repair what can be repaired.
fix:
    ruff check --fix .
    ruff format .

# All tests that need no GPU; arguments go to pytest: `just test tests/core -k reward`.
test *arguments:
    pytest -m "not gpu" {{arguments}}

# The tests that need a CUDA device.
gpu *arguments:
    pytest -m gpu {{arguments}}

# Optimize modules of ordinary size on this machine's GPU, and print the README's table.
bench *arguments:
    python tests/gpu/bench.py {{arguments}}

# Write the documents that come from code.
gen:
    python tests/repo/generate.py

# Fail where a document differs from what `just gen` would write.
gen-check:
    python tests/repo/generate.py --check

lint:
    ruff check .
    ruff format --check .

types:
    mypy

imports:
    lint-imports
