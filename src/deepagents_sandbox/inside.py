"""Run inside a sandbox, before the command: open the port of the proxy, and hand its socket to the harness.

The network of a sandbox is its own, and nothing of the host listens in it. A socket belongs to the network in
which it was made, whoever holds it; so the proxy outside serves this one without any relay.
"""

import array
import os
import socket
import sys

PORT = 3128


def main() -> None:
    """Arguments: the descriptor of a socket of the harness, then the program to become."""
    harness = socket.socket(fileno=int(sys.argv[1]))
    listener = socket.socket()
    listener.bind(("127.0.0.1", PORT))
    listener.listen(128)
    sent = array.array("i", [listener.fileno()])
    harness.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
    harness.close()
    listener.close()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
