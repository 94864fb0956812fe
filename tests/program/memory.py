"""How much memory a task has, and that what others do to it does not make that grow."""
import os
from unittest import mock

GROWTH_MAX_MB = 64
QUARANTINE_MB = 16  # what a sanitized task has freed and keeps from use; 256 where nobody says so


def resident_mb(task):
    with open(f"/proc/{task.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


class Grows:
    """Mixed into a test case: its tasks give back what they free, in a build with a sanitizer, too."""

    def setUp(self):
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb={QUARANTINE_MB}"
        changed = mock.patch.dict(os.environ, {"ASAN_OPTIONS": options})
        changed.start()
        self.addCleanup(changed.stop)
        super().setUp()

    def assert_grown_little(self, task, before_mb):
        self.assertLess(resident_mb(task) - before_mb, GROWTH_MAX_MB, task.name)
