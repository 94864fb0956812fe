"""A proxy between tasks that talk over TCP, which treats their connections badly.

It stands at addresses of its own, one for each ps, and carries what comes to it there and back.
What becomes of a connection is drawn when it is made (Fate), in bytes and not in time, so that it
means the same on a fast machine and a slow one: after so many it is

- reset: both sides are told so at once, and what was under way is lost;
- cut: what came before is handed over, then both sides are hung up on;
- halved: one side is told at once, the other only a moment later;

and before it may be stalled (nothing is read for a moment), delayed and split into small pieces.
After as many ends as it was given, or as many bytes, the proxy is well-behaved.
"""
import asyncio
import dataclasses
import random
import socket
import struct
import threading

UP, DOWN = "up", "down"  # to the ps, and back
RESET, CUT, HALVED = "reset", "cut", "halved"
ENDS = (RESET, RESET, CUT, HALVED)
READ_BYTES_MAX = 1 << 16
SMALL_BYTES_MAX = 200  # of a piece of a connection that is split
SPLIT_PIECES_MAX = 60  # then it continues whole
DELAY_S = 0.002  # of such a piece
STALL_S = (0.01, 0.2)
LINGER_S = (0.001, 0.1)  # of the side that is not told at once
JOIN_S = 30  # for the thread to end
BACKLOG = 64


@dataclasses.dataclass
class Fate:
    """What becomes of one connection."""
    end: str
    way: str
    at: int  # bytes that went this way
    told: str  # of a halved one: the side that is told first
    linger_s: float
    stall_at: int
    stall_s: float  # 0: none
    pieces: int  # so many small ones, to begin with
    delay_s: float


def draw_fate(rng, bytes_max):
    """Early ends as well as late ones: half of them within the first words."""
    far = rng.randrange(1, bytes_max)
    near = int(bytes_max ** rng.random())
    return Fate(end=rng.choice(ENDS), way=rng.choice((UP, DOWN)), at=rng.choice((far, near)),
                told=rng.choice((UP, DOWN)), linger_s=rng.uniform(*LINGER_S),
                stall_at=rng.randrange(bytes_max), stall_s=rng.choice((0, rng.uniform(*STALL_S))),
                pieces=rng.choice((0, 0, rng.randrange(SPLIT_PIECES_MAX))),
                delay_s=rng.choice((0, DELAY_S)))


class Ended(Exception):
    """The moment of an end has come."""


def reset(end):
    """Whoever is at the other side hears of it with its next look."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


class Passage:
    """One connection from a worker to a ps, and how far it has come."""

    def __init__(self, proxy, worker, ps, about):
        self.proxy, self.about = proxy, about
        self.ends = {DOWN: worker, UP: ps}  # by the way that leads there
        self.fate = draw_fate(proxy.rng, proxy.limits.bytes_each)
        self.pieces = self.fate.pieces

    async def carry(self, way):
        loop = asyncio.get_running_loop()
        source, sink = self.ends[DOWN if way == UP else UP], self.ends[way]
        carried = 0
        while data := await loop.sock_recv(source, self.piece_bytes(way, carried)):
            if self.pieces > 0:
                self.pieces -= 1
                await asyncio.sleep(self.fate.delay_s)
            await loop.sock_sendall(sink, data)
            carried += len(data)
            self.proxy.carried[way] += len(data)
            await self.meet_fate(way, carried)
        sink.shutdown(socket.SHUT_WR)

    def piece_bytes(self, way, carried):
        """No more than to where something happens."""
        most = SMALL_BYTES_MAX if self.pieces > 0 else READ_BYTES_MAX
        left = self.fate.at - carried
        return min(most, left) if way == self.fate.way and left > 0 else most

    async def meet_fate(self, way, carried):
        fate = self.fate
        if fate.stall_s > 0 and way == fate.way and carried >= fate.stall_at:
            stall_s, fate.stall_s = fate.stall_s, 0
            await asyncio.sleep(stall_s)
        if way == fate.way and carried == fate.at and self.proxy.may_end(self):
            raise Ended

    async def live(self):
        """Until both sides have said all they had to say, one breaks off, or it is ended."""
        ways = [asyncio.create_task(self.carry(way)) for way in (UP, DOWN)]
        try:
            await asyncio.gather(*ways)
            self.hang_up()
        except Ended:
            await self.end(ways)
        except OSError:
            self.reset()
        finally:
            await self.stop(ways)
            self.reset()

    async def stop(self, ways):
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def end(self, ways):
        await self.stop(ways)
        if self.fate.end == CUT:
            self.hang_up()
        elif self.fate.end == HALVED:
            reset(self.ends.pop(self.fate.told))
            await asyncio.sleep(self.fate.linger_s)
        self.reset()

    def hang_up(self):
        """What was handed over arrives before the end."""
        for end in self.ends.values():
            end.close()
        self.ends.clear()

    def reset(self):
        for end in self.ends.values():
            reset(end)
        self.ends.clear()


@dataclasses.dataclass
class Limits:
    """How badly connections are treated."""
    ends: int  # of connections, at most
    bytes_each: int  # that one carries one way before it is ended, at most
    bytes_all: int  # that all carry both ways, and then none is ended any more


class Proxy:
    """addresses[i] leads to targets[i]. passage: of what kind its connections are."""

    def __init__(self, targets, seed, limits, passage=Passage):
        self.rng = random.Random(seed)
        self.passage = passage
        self.limits = limits
        self.carried = {UP: 0, DOWN: 0}  # bytes
        self.history = []  # of ends, in words
        self.trouble = []  # of the proxy itself
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) for _ in targets]
        self.addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in self.listeners]
        self.targets = targets
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """In a thread of its own, until everything is cancelled."""
        self.loop.run_until_complete(self.serve())
        self.loop.close()

    async def serve(self):
        try:
            await asyncio.gather(*map(self.accept, self.listeners, self.targets))
        except asyncio.CancelledError:
            pass
        except OSError as trouble:
            self.trouble.append(repr(trouble))
        passages = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*passages, return_exceptions=True)

    async def accept(self, listener, target):
        listener.setblocking(False)
        passages = set()
        while True:
            worker, _ = await self.loop.sock_accept(listener)
            passage = asyncio.create_task(self.begin(worker, target))
            passages.add(passage)  # who is not held on to may be forgotten half way
            passage.add_done_callback(passages.discard)

    async def begin(self, worker, target):
        host, port = target.rsplit(":", 1)
        ps = socket.socket()
        for end in (worker, ps):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self.loop.sock_connect(ps, (host, int(port)))
            about = f"to ps/{self.targets.index(target)} from port {worker.getpeername()[1]}"
        except OSError:  # the one is not there yet, or the other has gone already
            reset(worker)
            ps.close()
            return
        try:
            await self.passage(self, worker, ps, about).live()
        except Exception as trouble:  # pylint: disable=broad-except
            self.trouble.append(repr(trouble))

    def may_end(self, passage):
        carried = sum(self.carried.values())
        if self.count() >= self.limits.ends or carried >= self.limits.bytes_all:
            return False
        self.history.append(f"{passage.about}: {passage.fate}")
        return True

    def count(self):
        """How many connections it has ended."""
        return len(self.history)

    def stop(self):
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    def close(self):
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop)
        self.thread.join(JOIN_S)
        for listener in self.listeners:
            listener.close()

    def story(self):
        return "\n".join([f"--- proxy: {self.count()} ends", *self.history, *self.trouble])
