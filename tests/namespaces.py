"""Commands in a network of their own that has nothing but loopback."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from processes import clean_environment

_UP = 'ip link set lo up || exit 97; "$@"; exit $?'


def in_a_namespace(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The command, run where it reaches nothing but what it starts; skips where no namespace can be made.

    It has process ids of its own, too, and sees no other process; whatever it leaves behind is killed.
    """
    if (why := _lacking()) is not None:
        pytest.skip(why)
    return _run(command)


def told_by(program: str, folder: Path) -> tuple[dict[str, Any], str]:
    """What a program below tests/, run so on the folder, prints as JSON and nothing else; its stderr."""
    tests = Path(__file__).parent
    paths = os.pathsep.join([str(tests), *sys.path])
    started = ["env", f"PYTHONPATH={paths}", sys.executable, str(tests / program), str(folder)]
    done = in_a_namespace(started)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@functools.cache
def _lacking() -> str | None:
    """Why no namespace can be made here; None where one can."""
    missing = [name for name in ("unshare", "ip") if shutil.which(name) is None]
    if missing:
        return f"no network namespace: there is no program {' and no '.join(missing)}"
    done = _run(["true"])
    return f"no network namespace: {done.stderr.strip() or 'refused'}" if done.returncode else None


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    alone = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return subprocess.run(
        ["unshare", *alone, "sh", "-c", _UP, "sh", *command], capture_output=True, text=True, check=False,
        timeout=1800, env=clean_environment(),
    )  # fmt: skip
