"""Who ran what code, on what machine and with which packages."""

from __future__ import annotations

import getpass
import logging
import os
import platform
import socket
import subprocess
import uuid
from functools import lru_cache
from importlib import metadata
from pathlib import Path

log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def machine() -> str:
    """This machine's name, told from another machine of the same name by its network address."""
    return f"{socket.gethostname()}/{uuid.getnode():012x}"


@lru_cache(maxsize=1)
def origin_tags() -> dict[str, str]:
    """Who ran what code: MLflow's own tags, which its UI shows, and ragauge's."""
    from ragauge import __version__

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
    """The versions of Python (and what it runs on) and of every installed package but ragauge, by name."""
    versions: dict[str, str] = {}
    for found in metadata.distributions():
        # What an interrupted pip leaves behind has no name; the first of two on the path is imported.
        if found.name:
            versions.setdefault(found.name.lower().replace("_", "-"), found.version)
    versions.pop("ragauge", None)
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **dict(sorted(versions.items())),
    }


def _git(*args: str) -> str | None:
    try:
        # Where the code is, which need not be where it was started.
        command = ["git", "-C", str(Path(__file__).parent), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def alive(pid: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0
