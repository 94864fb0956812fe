"""hosts.py - two hosts on this machine: network namespaces, and between them a link of a given rate.

Needs root, Linux's token bucket (tbf), and the programs unshare, nsenter, setpriv, ip and tc.

The namespaces have no names: each lasts as long as a process in it, and these end with this one,
however it ends. So nothing has to be cleaned up, even after a kill.
"""
import contextlib
import ctypes
import math
import os
import shutil
import socket
import subprocess
import threading
import time

BURST, LATENCY = "256kb", "100ms"  # of the token bucket: what it lets pass at once, and may queue
END_WITH_US = ("setpriv", "--pdeathsig", "KILL")
SETUP_LIMIT_S = 60
TRANSFER_LIMIT_S = 120
WARMUP_BYTES = 16 << 20
TRANSFER_BYTES = 64 << 20  # at least
BLOCK_BYTES = 1 << 20
CLONE_NEWNET = 0x40000000


def start_with_us(command, **how):
    """A process that ends with us, with subprocess.Popen's options."""
    return subprocess.Popen([*END_WITH_US, *command], **how)


def enter_namespace(descriptor):
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def can_be_made():
    """As root, where the programs are."""
    tools = all(map(shutil.which, ("setpriv", "nsenter", "ip", "tc")))
    return tools and subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


class Hosts:
    """Two hosts; `rate_mbit` is what the link between them carries each way, None: not limited.

    Leaving the `with` block ends whatever was started on them.
    """

    ADDRESSES = ("10.77.0.1", "10.77.0.2")
    DEVICE = "across"

    def __init__(self, rate_mbit):
        self.rate_mbit = rate_mbit
        self.keepers, self.started = [], []

    def __enter__(self):
        os.environ["DTRAIN_INSECURE"] = "true"  # nobody else reaches these hosts
        try:
            self.keepers = [self.keeper() for _ in self.ADDRESSES]
            there = [str(keeper.pid) for keeper in self.keepers]
            self.set_up("ip", "link", "add", self.DEVICE, "netns", there[0], "type", "veth",
                        "peer", "name", self.DEVICE, "netns", there[1])
            for side, address in enumerate(self.ADDRESSES):
                self.connect(side, address)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    @staticmethod
    def keeper():
        """A process that only keeps a new namespace alive."""
        process = start_with_us(["unshare", "--net", "cat"], bufsize=0, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, start_new_session=True)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"\n")
        if process.stdout.read(1) != b"\n":  # comes back from inside
            raise OSError(f"unshare --net: exit code {process.wait()} (only root may)")
        return process

    @staticmethod
    def set_up(*command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=SETUP_LIMIT_S,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")

    def connect(self, side, address):
        inside = self.inside(side)
        self.set_up(*inside, "ip", "addr", "add", address + "/24", "dev", self.DEVICE)
        self.set_up(*inside, "ip", "link", "set", "lo", "up")
        self.set_up(*inside, "ip", "link", "set", self.DEVICE, "up")
        if self.rate_mbit is not None:
            self.set_up(*inside, "tc", "qdisc", "add", "dev", self.DEVICE, "root", "tbf",
                        "rate", f"{self.rate_mbit}mbit", "burst", BURST, "latency", LATENCY)

    def namespace(self, side):
        return f"/proc/{self.keepers[side].pid}/ns/net"

    def inside(self, side):
        """Arguments to put before a command, to run it on this host."""
        return [*END_WITH_US, "nsenter", "--net=" + self.namespace(side)]

    def start(self, side, command, **how):
        """A process on this host, with subprocess.Popen's options."""
        process = subprocess.Popen([*self.inside(side), *command], **how)
        self.started.append(process)
        return process

    def end(self):
        for process in (*self.started, *self.keepers):
            process.kill()
            process.wait()
        for keeper in self.keepers:
            keeper.stdin.close()
            keeper.stdout.close()

    @contextlib.contextmanager
    def sockets(self, side):
        """Sockets that this thread creates meanwhile belong to this host, also later."""
        with open("/proc/thread-self/ns/net", "rb") as ours, \
                open(self.namespace(side), "rb") as there:
            enter_namespace(there.fileno())
            try:
                yield
            finally:
                enter_namespace(ours.fileno())

    def transfer_seconds(self, size):
        """Seconds in which a plain socket transfers this many bytes, measured over many transfers."""
        with contextlib.ExitStack() as stack:
            with self.sockets(1):
                server = stack.enter_context(socket.create_server((self.ADDRESSES[1], 0)))
            with self.sockets(0):
                sender = stack.enter_context(socket.create_connection(server.getsockname()))
            receiver = stack.enter_context(server.accept()[0])
            sender.settimeout(TRANSFER_LIMIT_S)
            receiver.settimeout(TRANSFER_LIMIT_S)
            move(sender, receiver, WARMUP_BYTES)  # until the connection has found its pace
            times = math.ceil(TRANSFER_BYTES / size)
            start = time.perf_counter()
            move(sender, receiver, size * times)
            return (time.perf_counter() - start) / times


def move(sender, receiver, size):
    """Transfers this many bytes; OSError if the connection fails."""
    thread = threading.Thread(target=send, args=(sender, size))
    thread.start()
    try:
        receive(receiver, size)
    finally:
        thread.join()  # which takes no longer than its time limit


def send(connection, size):
    block = bytes(BLOCK_BYTES)
    with contextlib.suppress(OSError):  # the receiver's failure is the one that is told
        while size > 0:
            connection.sendall(block[:size])
            size -= len(block)


def receive(connection, size):
    block = bytearray(BLOCK_BYTES)
    while size > 0:
        count = connection.recv_into(block, min(size, len(block)))
        if count == 0:
            raise OSError("a bare socket: closed by its peer")
        size -= count
