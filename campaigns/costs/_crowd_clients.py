"""The clients of `campaigns.costs.crowd`, a process that imports nothing of penstock, so that it
starts at once: `python -m campaigns.costs._crowd_clients PORT COUNT [--reset]`. Standard input has
a line with what each client sends, in hexadecimal, and a line when all of them are to leave.
"""

import resource
import socket
import struct
import sys


def main(port: int, count: int, *, are_reset: bool) -> None:
    """Open `count` connections, wait for the second line, and close all of them at once."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sent = bytes.fromhex(sys.stdin.readline())
    opened = []
    for number in range(count):
        peer = socket.socket()
        # 100 connections from each address of the loopback network, so that no bound for an
        # address, nor the range of ports, matters.
        peer.bind((f"127.0.{1 + number // 25_000}.{1 + number // 100 % 250}", 0))
        peer.connect(("127.0.0.1", port))
        peer.sendall(sent)
        if are_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        opened.append(peer)
    print("arrived", flush=True)
    sys.stdin.readline()
    for peer in opened:
        peer.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), are_reset="--reset" in sys.argv)
