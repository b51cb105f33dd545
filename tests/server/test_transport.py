import os
import subprocess
import sys
import threading

import pytest

from adaexplore_lsp.transport import FdWriter

FLOOD = """
import os, subprocess, sys, threading
from adaexplore_lsp.transport import claim_stdio
reader, writer = claim_stdio()
print("a print")
os.write(1, b"a write")
subprocess.run(["echo", "a child"])
assert sys.stdin.read() == "" and os.read(0, 1) == b""
assert reader.read() == b"for the protocol"
def send(letter):
    for _ in range(50):
        writer.write(letter * 20000)
threads = [threading.Thread(target=send, args=(bytes([97 + n]),)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-u"]])
def test_only_messages_reach_the_output_and_each_is_whole(options):
    done = subprocess.run(
        [sys.executable, *options, "-c", FLOOD], input=b"for the protocol", capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert {b"a print", b"a writea child"} <= set(done.stderr.splitlines())
    messages = [done.stdout[start : start + 20000] for start in range(0, len(done.stdout), 20000)]
    assert len(messages) == 8 * 50
    assert all(len(set(message)) == 1 for message in messages)


def test_a_message_is_written_whole_where_the_system_takes_a_part(monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    reading, writing = os.pipe()
    FdWriter(writing).write(b"0123456789")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"0123456789"


def test_a_full_pipe_is_waited_for():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # as some editors leave it
    received = []

    def receive():
        with os.fdopen(reading, "rb") as file:
            received.append(file.read())

    thread = threading.Thread(target=receive)
    thread.start()
    FdWriter(writing).write(b"x" * 1_000_000)
    os.close(writing)
    thread.join(10)
    assert received == [b"x" * 1_000_000]


def test_a_client_that_is_gone_is_an_error():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        FdWriter(writing).write(b"x")
    os.close(writing)
