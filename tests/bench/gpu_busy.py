"""gpu_busy.py - which part of the time a GPU was busy, as the driver's library has it.

Hopper and newer GPUs count: two looks at their counters, at the beginning and at the end, give the
share of the time between in which any engine was active, and the mean share of multiprocessors that
had work. Of others the driver says, when it is asked, in which share of the last sixth of a second
up to a second at least one kernel was executing; the mean of many answers is taken.
"""
import contextlib
import ctypes
import os
import statistics
import threading

LIBRARY = "libnvidia-ml.so.1"
ASK_EVERY_S = 0.1
STOP_LIMIT_S = 20
SUCCESS = 0
METRICS_VERSION = 1  # NVML_GPM_METRICS_GET_VERSION
METRICS_MAX = 512  # more than any version of the library has room for; it reads `count` of them
ENGINE, MULTIPROCESSORS = 1, 2  # NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_SM_UTIL


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, in percent"""
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Metric(ctypes.Structure):
    """nvmlGpmMetric_t; the value in percent"""
    _fields_ = [("name", ctypes.c_uint), ("status", ctypes.c_uint), ("value", ctypes.c_double),
                ("texts", ctypes.c_char_p * 3)]


class Metrics(ctypes.Structure):
    """nvmlGpmMetricsGet_t"""
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint),
                ("first", ctypes.c_void_p), ("second", ctypes.c_void_p),
                ("metrics", Metric * METRICS_MAX)]


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
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise Trouble(f"{name}: not in this library") from None
        self.demand(name, function(*arguments))

    def demand(self, name, status):
        if status != SUCCESS:
            said = self.library.nvmlErrorString(status) or b"?"
            raise Trouble(f"{name}: {said.decode(errors='replace')}")

    def share(self):
        """Of the last moments, in which a kernel was executing"""
        found = Utilization()
        self.call("nvmlDeviceGetUtilizationRates", self.gpu, ctypes.byref(found))
        return found.gpu / 100

    def look(self):
        """At the counters; the caller drops it."""
        sample = ctypes.c_void_p()
        self.call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        try:
            self.call("nvmlGpmSampleGet", self.gpu, sample)
        except Trouble:
            self.drop(sample)
            raise
        return sample

    def drop(self, sample):
        self.call("nvmlGpmSampleFree", sample)

    def between(self, first, second):
        """Shares of the time between two looks: of the engine, of the multiprocessors."""
        found = Metrics(version=METRICS_VERSION, count=2, first=first, second=second)
        found.metrics[0].name, found.metrics[1].name = ENGINE, MULTIPROCESSORS
        self.call("nvmlGpmMetricsGet", ctypes.byref(found))
        for metric in found.metrics[:2]:
            self.demand("nvmlGpmMetricsGet", metric.status)
        return tuple(metric.value / 100 for metric in found.metrics[:2])


class Watch:
    """Watches a GPU while the `with` block runs."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.driver = self.first = self.stop = self.thread = None
        self.shares, self.counted, self.trouble = [], None, ""

    def ask(self, driver, stop):
        try:
            while True:
                self.shares.append(driver.share())
                if stop.wait(ASK_EVERY_S):
                    return
        except Trouble as trouble:
            self.trouble = str(trouble)

    def begin_to_count(self):
        """A GPU that does not count is asked instead."""
        try:
            self.first = self.driver.look()
        except Trouble:
            self.first = None

    def end_to_count(self):
        """Where counters fail what the driver said meanwhile remains."""
        with contextlib.suppress(Trouble):
            second = self.driver.look()
            self.counted = self.driver.between(self.first, second)
            self.driver.drop(second)
            self.driver.drop(self.first)

    def __enter__(self):
        self.shares, self.counted, self.trouble, self.thread = [], None, "", None
        try:
            self.driver = Driver(self.gpu)
        except (OSError, Trouble) as trouble:
            self.trouble = str(trouble)
            return self
        self.begin_to_count()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.ask, args=(self.driver, self.stop), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        if not self.thread:
            return
        self.stop.set()
        self.thread.join(STOP_LIMIT_S)
        if self.first:
            self.end_to_count()

    def busy(self):
        """The share of the time, or None: trouble says why; and how it is known."""
        if self.counted:
            engine, multiprocessors = self.counted
            return engine, f"counted; multiprocessors {multiprocessors:.0%}"
        if self.trouble or not self.shares:
            return None, self.trouble or "it was over too soon"
        return statistics.fmean(self.shares), "as the driver says of the last moments"
