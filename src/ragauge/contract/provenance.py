"""Provenance of a run: user, code, machine and packages."""

from __future__ import annotations

import getpass
import logging
import os
import platform
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path

log = logging.getLogger(__name__)

PACKAGES_FILE = "packages.txt"  # of `packages_text`, beside a logged configuration


@lru_cache(maxsize=1)
def machine() -> str:
    """Host name and network address of this machine, or its id where it has no network but itself."""
    address = f"{uuid.getnode():012x}"
    if uuid.getnode() >> 40 & 1:  # no address was found: a number that is another in every process
        with suppress(OSError):
            address = Path("/etc/machine-id").read_text(encoding="ascii").strip()[:12]
    return f"{socket.gethostname()}/{address}"


@lru_cache(maxsize=1)
def hardware() -> dict[str, str | int]:
    """Name, processor and number of cores of this machine."""
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = models[0] if models else processor
    return {"machine": socket.gethostname(), "processor": processor, "cores": os.cpu_count() or 0}


@lru_cache(maxsize=1)
def origin_tags() -> dict[str, str]:
    """Tags for the user and code of a run: MLflow's own, shown in its UI, and ragauge's."""
    from ragauge.contract import __version__

    commit = _git("rev-parse", "HEAD")
    dirty = bool(commit and _git("status", "--porcelain", "--untracked-files=no"))
    tags = {
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "ragauge_version": __version__,
    }
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (OSError, KeyError):
        log.debug("no user name on this machine")
    if commit:
        tags |= {"mlflow.source.git.commit": commit, "git_commit": commit + ("-dirty" if dirty else "")}
    return tags


@lru_cache(maxsize=1)
def installed_packages() -> dict[str, str]:
    """{name: version} of Python, the platform and every installed package except ragauge."""
    versions: dict[str, str] = {}
    for found in metadata.distributions():
        # `found.name` and `found.version` would parse the whole file, README included, once each.
        head = (found.read_text("METADATA") or found.read_text("PKG-INFO") or "").partition("\n\n")[0]
        name, version = (re.search(rf"^{field}:(.+)$", head, re.M) for field in ("Name", "Version"))
        # What an interrupted pip leaves behind has no name; the first of two on the path is imported.
        if name and version:
            versions.setdefault(name[1].strip().lower().replace("_", "-"), version[1].strip())
    versions.pop("ragauge", None)
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **dict(sorted(versions.items())),
    }


def packages_text() -> str:
    """The installed packages, as a requirements file; Python and the platform are comments in it."""
    return "".join(
        f"# {name} {version}\n" if name in ("python", "platform") else f"{name}=={version}\n"
        for name, version in installed_packages().items()
    )


def read_packages(text: str) -> dict[str, str]:
    """{name: version} from the output of `packages_text`, with Python and the platform."""
    lines = [line.removeprefix("# ").partition(" " if line.startswith("# ") else "==") for line in text.splitlines()]
    return {name: version for name, _, version in lines if version}


def _git(*args: str) -> str | None:
    try:
        # Where the code is, which need not be where it was started.
        command = ["git", "-C", str(Path(__file__).parent), *args]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def process_tags() -> dict[str, str]:
    """Tags that identify the process of an open run: machine, process id and `process_mark`."""
    return {
        "ragauge.host": machine(),
        "ragauge.pid": str(os.getpid()),
        "ragauge.process": process_mark(os.getpid()),
    }


def process_alive(tags: Mapping[str, str]) -> bool | None:
    """Whether the process with these `process_tags` runs on this machine, or has ended.

    None where that is unknown: on another machine, and for a process of another container.
    """
    if tags.get("ragauge.host") != machine():
        return None
    pid = tags.get("ragauge.pid", "")
    then, here = (mark.split(" ") for mark in (tags.get("ragauge.process", ""), process_mark(os.getpid())))
    if len(then) == len(here) == 3:
        if then[0] != here[0]:
            return False  # the machine was started anew
        if then[1] != here[1]:
            return None  # its process ids are not the ones seen here
    if not pid.isdigit() or not alive(int(pid)):
        return False
    now = process_mark(int(pid)).split(" ")
    # Another process may have got the number meanwhile.
    return True if then == now else False if len(then) == len(now) == 3 else None


def process_mark(pid: int) -> str:
    """Start of the machine, process id namespace and start of the process: "<boot> <namespace> <ticks>".

    No two processes of a machine have the same. "" where the system does not tell (only Linux does).
    """
    stat = _stat(pid)
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {stat[19]}" if stat else ""
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Whether a process of this machine exists and has not ended (a zombie has)."""
    if sys.platform == "win32":  # where os.kill would end the process, or send it Ctrl-C
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    stat = _stat(pid)
    return pid > 0 and (not stat or stat[0] != "Z")


def _alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return False
    code = ctypes.c_ulong()
    known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return not known or code.value == 259  # STILL_ACTIVE


def _stat(pid: int) -> list[str]:
    """The fields of Linux's /proc/<pid>/stat from the state on; [] where there is no such file."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name before it may hold anything
