"""gpu_busy.py - which part of the time kernels were executing, as the driver's library has it.

The driver looks at the GPU at short intervals and gives, when it is asked, the share of the last
sixth of a second up to a second in which at least one kernel was executing. Gaps that are shorter
than it can see count as busy.
"""
import ctypes
import os
import statistics
import threading

LIBRARY = "libnvidia-ml.so.1"
ASK_EVERY_S = 0.1
STOP_LIMIT_S = 20
SUCCESS = 0


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, in percent"""
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Trouble(Exception):
    """The library did not do what it was asked for."""


def visible_gpu():
    """As the driver calls the first GPU that CUDA sees: by number, in the order of the bus, or by
    name."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return first or "0"


class Driver:
    """The library, and the GPU that is asked for."""

    def __init__(self, gpu):
        self.library = ctypes.CDLL(LIBRARY)
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        self.call("nvmlInit_v2")
        self.gpu = ctypes.c_void_p()
        if gpu.isdigit():
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(gpu)),
                      ctypes.byref(self.gpu))
        else:
            self.call("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(gpu.encode()),
                      ctypes.byref(self.gpu))

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != SUCCESS:
            said = self.library.nvmlErrorString(status) or b"?"
            raise Trouble(f"{name}: {said.decode(errors='replace')}")

    def share(self):
        found = Utilization()
        self.call("nvmlDeviceGetUtilizationRates", self.gpu, ctypes.byref(found))
        return found.gpu / 100


class Watch:
    """Asks again and again while the `with` block runs."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.shares, self.trouble = [], ""
        self.stop = self.thread = None

    def ask(self, driver, stop):
        try:
            while not stop.wait(ASK_EVERY_S):
                self.shares.append(driver.share())
        except Trouble as trouble:
            self.trouble = str(trouble)

    def __enter__(self):
        self.shares, self.trouble, self.thread = [], "", None
        try:
            driver = Driver(self.gpu)
        except (OSError, AttributeError, Trouble) as trouble:
            self.trouble = str(trouble)
            return self
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.ask, args=(driver, self.stop), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        if self.thread:
            self.stop.set()
            self.thread.join(STOP_LIMIT_S)

    def busy(self):
        """The mean share, or None: trouble says why."""
        if self.trouble or not self.shares:
            return None
        return statistics.fmean(self.shares)
