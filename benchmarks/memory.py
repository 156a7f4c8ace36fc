"""The most memory of a process, by /proc: what the benchmarks share."""

from __future__ import annotations

import os
import threading
from pathlib import Path


class Peak:
    """The most memory of this process and of all that it starts, in MiB, looked at 20 times a second.

    resident: all pages, those of mapped files included, which the kernel takes back when others need them;
    own: the pages that it cannot take back.
    """

    def __init__(self) -> None:
        import psutil

        self.resident = self.own = 0.0
        self._me = psutil.Process()
        self._gone: type[Exception] = psutil.Error
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        self.resident = max(self.resident, status_mib(os.getpid(), "VmHWM"))

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            self._look()

    def _look(self) -> None:
        resident = own = 0.0
        for pid in (self._me.pid, *(child.pid for child in self._me.children(recursive=True))):
            try:
                resident += status_mib(pid, "VmRSS")
                own += status_mib(pid, "RssAnon") + status_mib(pid, "RssShmem")
            except OSError:  # it ended
                continue
        self.resident, self.own = max(self.resident, resident), max(self.own, own)


def status_mib(pid: int, name: str) -> float:
    """A line of /proc/<pid>/status in MiB; 0 where it is not there."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0
