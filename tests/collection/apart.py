"""Run a command in a network of its own, which only its listed ports join to this machine's loopback.

For a server that listens at all addresses and cannot be told otherwise: in a network namespace (Linux) there
is nothing but a loopback, so all addresses are that one. Sockets belong to the namespace they are made in:
those made before entering it go on listening at 127.0.0.1 outside, and a process that has them passes what
comes on to the server inside.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

# Of util-linux. Who is not root becomes root of a namespace of users, where the machine allows that.
UNSHARE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--map-root-user")
SECONDS = 10  # until a killed process has released its port
SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
SET_FLAGS, UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
CHUNK = 1 << 16  # bytes


def why_not() -> str | None:
    """Say why this machine gives no process a network of its own; None where it does."""
    try:
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return "a network namespace needs Linux and its command unshare"
    return f"this machine allows no network namespace: {tried.stderr.strip()}" if tried.returncode else None


def start_apart(
    command: Sequence[str], ports: Mapping[int, int], *, cwd: Path, env: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a command in a network of its own, `ports` of which (outside: inside) are at 127.0.0.1 here.

    The process is the command itself: to kill it ends the passing on too.
    """
    with ExitStack() as stack:
        doors = {}
        for outside, inside in ports.items():
            listening = stack.enter_context(_listen(outside))
            doors[listening.fileno()] = inside
        listed = [f"{fd}:{port}" for fd, port in doors.items()]
        return subprocess.Popen(
            [*UNSHARE, sys.executable, __file__, *listed, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=cwd,
            env=env,
            pass_fds=list(doors),
        )


def _listen(port: int) -> socket.socket:
    """Listen at loopback; one who passed on for a process that was killed may take a moment to follow it."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _enter(arguments: Sequence[str]) -> None:
    """Inside: raise the loopback, leave a child to pass connections on, and become the command."""
    split = arguments.index("--")
    pairs = [argument.split(":") for argument in arguments[:split]]
    doors = {socket.socket(fileno=int(fd)): int(port) for fd, port in pairs}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))
    command = os.getpid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == command:  # or it died before it could be said
            asyncio.run(_pass_on(doors))
        os._exit(0)
    for door in doors:
        door.close()
    os.execv(arguments[split + 1], arguments[split + 1 :])


async def _pass_on(doors: Mapping[socket.socket, int]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for door, port in doors.items():
            tasks.create_task(_serve(door, port))


async def _serve(door: socket.socket, port: int) -> None:
    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # nobody listens there, or not yet
            writer.close()
            return
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    async with await asyncio.start_server(join, sock=door) as server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:  # one end was cut off: so is the other
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    _enter(sys.argv[1:])
