"""One job of a sweep as a Ray task: the data sent to another machine, and the data returned."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge import __version__

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

_LONGEST = 50_000  # characters of a job's output that are sent back; all of it stands in its log file


@dataclass(frozen=True)
class Sent:
    """A job in the form sent to a machine.

    pickled: Hydra's context, the task, the job's composed config and the state of Hydra's singletons, which
    are read once the process is where the job is to run. marks: a folder in which a job that begins leaves
    a file with the name of its machine.
    """

    number: int
    attempt: int
    cwd: str
    sweep: str
    marks: str
    environment: Mapping[str, str]
    version: str
    pickled: bytes


@dataclass(frozen=True)
class Ended:
    """How a job's task ended: its output, and any error that kept it from starting."""

    out: str = ""
    err: str = ""
    refused: str | None = None


def run_sent(job: Sent) -> Ended:
    """Runs the job in this process; its record and its MLflow run hold the outcome."""
    host = socket.gethostname()
    if job.version != __version__:
        return Ended(refused=f"machine {host} has ragauge {__version__}, this one {job.version}")
    if not Path(job.cwd).is_dir() or not Path(job.sweep).is_dir():
        lacking = job.sweep if Path(job.cwd).is_dir() else job.cwd
        return Ended(
            refused=f"machine {host} has no folder {lacking}: a sweep on many machines is started in a "
            "folder that all of them share under the same path"
        )
    os.environ.update(job.environment)
    os.chdir(job.cwd)
    (Path(job.marks) / f"{job.number}.{job.attempt}").write_text(host, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _interruptible():
        error = _run(job.pickled)
    return Ended(out.getvalue()[-_LONGEST:], err.getvalue()[-_LONGEST:], error)


def _run(pickled: bytes) -> str | None:
    """Runs a pickled job; returns its error in a line, or None."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.singleton import Singleton
    from hydra.core.utils import setup_globals

    context, task, config, state = pickle.loads(pickled)
    setup_globals()
    Singleton.set_state(state)
    HydraConfig.instance().set_config(config)
    error = run_here(context, task, config)._return_value
    return f"{type(error).__name__}: {error}" if isinstance(error, Exception) else None


def run_here(context: HydraContext, task: TaskFunction, config: DictConfig) -> JobReturn:
    """Runs a job with a composed config in this process."""
    from hydra.core.utils import run_job

    return run_job(
        hydra_context=context,
        config=config,
        task_function=task,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Within the block, Ray's cancelling wakes the main thread, and the job handles SIGTERM.

    Ray only marks an interrupt as pending. A thread that waits for a lock, as one does that waits for replies
    of a chat server, is not woken by that, but by a signal. Ray's own handler of SIGTERM would end the
    process without a word to MLflow.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main = threading.get_ident()
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    ended = threading.Event()

    def wake() -> None:
        while (told := reader.recv(1)) and not ended.is_set():
            if told[0] == signal.SIGINT:
                signal.pthread_kill(main, signal.SIGINT)
                return

    # A shell that starts Ray in the background has interrupts ignored.
    sigint = signal.signal(signal.SIGINT, signal.default_int_handler)
    sigterm = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    waker = threading.Thread(target=wake, name="ragauge-wake", daemon=True)
    waker.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, sigterm)
        signal.signal(signal.SIGINT, sigint)
        writer.close()
        waker.join(5)
        reader.close()
