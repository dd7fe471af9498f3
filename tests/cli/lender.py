"""Lends its terminal to another process, and writes down how that ends: `lender.py SOCKET FILE`."""

import fcntl
import json
import os
import signal
import socket
import sys
import termios
from pathlib import Path

# What a terminal tells those who had it; the process that has it next is not among them.
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with socket.socket(socket.AF_UNIX) as lending:
    lending.connect(sys.argv[1])
    fcntl.ioctl(0, termios.TIOCNOTTY)
    lending.sendall(json.dumps([os.ttyname(0), {**os.environ}]).encode() + b"\n")
    # Who was killed says nothing.
    code = int(lending.recv(3) or 128 + signal.SIGKILL)
Path(sys.argv[2]).write_text(f"{code}\n")
