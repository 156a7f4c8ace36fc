"""A cluster on one machine, for trial: Ray's head and workers, MLflow and PostgreSQL, all on loopback.

python trial.py start     a head without cores, two workers of one core, an MLflow server, the ledger
python trial.py run ragauge -m retriever=bm25,sim hydra/launcher=ray hydra.launcher.address=127.0.0.1:6379
python trial.py status
python trial.py kill 1    worker 1 dies with all its processes, as a machine does that loses its power
python trial.py stop

Ray would listen on the machine's own address and look for the outside. So all of this is in a network
namespace that has nothing but loopback (Linux: unshare, nsenter, ip), and what `run` starts is in it, too.
Everything is written below --folder, by default trial/ in the working directory.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HEAD, MLFLOW, POSTGRES = 6379, 5000, 5432
STATE = "trial.json"
TRIES = 4  # of a node of Ray
PATIENCE = 1200  # seconds that all of it may take to start
ORPHANS_COME_HERE = 36  # prctl's PR_SET_CHILD_SUBREAPER


def main() -> int:
    """Does what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("trial"))
    verbs = parser.add_subparsers(dest="verb", required=True)
    start = verbs.add_parser("start", help="starts everything, and waits until it answers")
    start.add_argument("--workers", type=int, default=2, help="Ray's workers, of one core each (2)")
    start.add_argument("--no-mlflow", action="store_true", help="MLflow is where it is without a cluster")
    start.add_argument("--no-postgres", action="store_true", help="the ledger is a file")
    verbs.add_parser("stop", help="ends everything; files stay")
    verbs.add_parser("status", help="says what is alive")
    verbs.add_parser("kill", help="kills a worker with all its processes").add_argument("worker", type=int)
    verbs.add_parser("run", help="runs a command in the cluster's network, with its environment").add_argument(
        "command", nargs=argparse.REMAINDER
    )
    held = verbs.add_parser("hold")  # what `start` starts, in the namespace
    held.add_argument("workers", type=int)
    held.add_argument("leaving", nargs="*")
    given = parser.parse_args()
    folder = given.folder.absolute()
    if given.verb == "hold":
        return hold(folder, given.workers, given.leaving)
    state = known(folder)
    if given.verb == "start":
        if state is not None:
            return fail(f"a cluster runs already: python trial.py --folder {folder} stop")
        leaving = ["mlflow"] * given.no_mlflow + ["postgres"] * given.no_postgres
        return begin(folder, given.workers, leaving)
    if state is None:
        print(f"nothing runs in {folder}")
        return 0 if given.verb in ("stop", "status") else 1
    if given.verb == "run":
        environment = {**os.environ, **state["environment"]}
        return subprocess.run([*entering(state["holder"]), *given.command], env=environment).returncode
    if given.verb == "status":
        for name, pid in state["services"].items():
            print(f"{name:<10} {'runs' if alive(pid) else 'is gone'}")
        for name, value in state["environment"].items():
            print(f"{name}={value}")
        return 0
    if given.verb == "kill":
        pid = state["services"].get(f"worker {given.worker}")
        if pid is None or not alive(pid):
            return fail(f"no worker {given.worker} runs; there are: {', '.join(state['services'])}")
        kill(pid)
        return 0
    os.kill(state["holder"], signal.SIGTERM)
    return 0 if wait_for(lambda: not alive(state["holder"])) else fail(f"{state['holder']} does not end")


def begin(folder: Path, workers: int, leaving: Sequence[str]) -> int:
    """Starts the process that holds the namespace and all services, and waits until they answer."""
    lacking = [name for name in ("ip", "unshare", "nsenter", "ray", "mlflow") if program(name) is None]
    if lacking and not alone():
        return fail(f"not found: {', '.join(lacking)} (Linux, and pip install 'ragauge[ray]')")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STATE).unlink(missing_ok=True)
    apart = [] if alone() else ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net"]
    with (folder / "trial.log").open("w") as log:
        holder = subprocess.Popen(
            [*apart, sys.executable, __file__, "--folder", folder, "hold", str(workers), *leaving],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    if wait_for(lambda: (folder / STATE).is_file() or holder.poll() is not None) and holder.poll() is None:
        print(f"a cluster runs: Ray's head at 127.0.0.1:{HEAD}; logs are in {folder}")
        return 0
    kill(holder.pid)
    return fail(f"it did not start: {(folder / 'trial.log').read_text()[-2000:]}")


def hold(folder: Path, workers: int, leaving: Sequence[str]) -> int:
    """In the namespace: starts the services but for those left out, and ends them on SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ctypes.CDLL(None).prctl(ORPHANS_COME_HERE, 1, 0, 0, 0)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    short = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # paths of sockets have at most 107 characters
    services: dict[str, subprocess.Popen[bytes]] = {}
    try:
        environment = {
            "RAGAUGE_STORE": str(folder / "store"),
            "RAGAUGE_LEDGER": str(folder / "ledger.db"),
            # Whoever reaches a Ray cluster can run anything on it: it lets in who has the token.
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(folder / "token"),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        with open(
            folder / "token",
            "w",
            encoding="ascii",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        ) as token:
            token.write(secrets.token_hex(32))
        os.environ.update(environment)
        if "postgres" not in leaving and (database := postgres(short, folder, services)):
            environment["RAGAUGE_LEDGER"] = database
        if "mlflow" not in leaving:
            environment["MLFLOW_TRACKING_URI"] = mlflow(folder, services)
        ray = [
            "ray", "start", "--block", "--disable-usage-stats", "--object-store-memory", "100000000",
            "--min-worker-port", "0", "--max-worker-port", "0", "--node-ip-address", "127.0.0.1",
        ]  # fmt: skip
        head = ["--head", "--port", str(HEAD), "--num-cpus", "0", "--include-dashboard", "false"]
        node(folder, services, "head", [*ray, *head, "--temp-dir", str(short / "ray")])
        for number in range(1, workers + 1):  # one by one: Ray gives each half a minute, busy machine or not
            name = f"worker {number}"
            join = ["--address", f"127.0.0.1:{HEAD}", "--num-cpus", "1"]
            node(folder, services, name, [*ray, *join])
        state = {
            "holder": os.getpid(),
            "services": {name: service.pid for name, service in services.items()},
            "environment": environment,
        }
        (folder / "trial.tmp").write_text(json.dumps(state, indent=1))
        (folder / "trial.tmp").rename(folder / STATE)
        signal.sigwait({signal.SIGTERM})
    finally:
        while found := below(os.getpid()):
            for pid in found:
                end(pid)
            for pid in found:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:  # not ours yet: it is once its parent is gone
                    continue
        shutil.rmtree(short, ignore_errors=True)
        (folder / STATE).unlink(missing_ok=True)
    return 0


def postgres(short: Path, folder: Path, services: dict[str, subprocess.Popen[bytes]]) -> str | None:
    """The URL of the ledger in a PostgreSQL server; None, then it is a file, where there is no server.

    PostgreSQL refuses root, so it runs as postgres or nobody, which takes being root of the machine.
    """
    initdb, server = program("initdb"), program("postgres")
    mapped = Path("/proc/self/uid_map").read_text(encoding="utf-8").split()[2] == "1"
    if initdb is None or server is None or mapped:
        print("no PostgreSQL: the ledger is a file")
        return None
    user = next(entry.pw_name for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
    rights = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    data = short / "postgres"
    data.mkdir(mode=0o700)
    short.chmod(0o755)
    shutil.chown(data, user)
    options = ["-D", str(data), "-A", "trust", "-U", "ragauge", "--no-sync"]
    subprocess.run([initdb, *options], check=True, cwd="/", stdout=subprocess.DEVNULL, **rights)
    listening = ["-c", "listen_addresses=127.0.0.1", "-p", str(POSTGRES), "-k", str(data)]
    with (folder / "postgres.log").open("w") as log:
        services["postgres"] = subprocess.Popen(
            [server, "-D", str(data), *listening], cwd="/", stdout=log, stderr=log, **rights
        )
    ready(folder, services, "postgres")
    return f"postgresql://ragauge@127.0.0.1:{POSTGRES}/postgres"


def mlflow(folder: Path, services: dict[str, subprocess.Popen[bytes]]) -> str:
    """The address of an MLflow server."""
    services["mlflow"] = started(folder, "mlflow", [
        "mlflow", "server", "--host", "127.0.0.1", "--port", str(MLFLOW), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}",
        "--artifacts-destination", str(folder / "artifacts"),
    ])  # fmt: skip
    ready(folder, services, "mlflow")
    return f"http://127.0.0.1:{MLFLOW}"


def node(folder: Path, services: dict[str, subprocess.Popen[bytes]], name: str, command: Sequence[str]) -> None:
    """A node of Ray, which gives itself half a minute to start: on a busy machine it may take several."""
    for left in reversed(range(TRIES)):
        services[name] = started(folder, name, command)
        try:
            return ready(folder, services, name)
        except RuntimeError:
            # What it started is the holder's by now.
            others = [service.pid for one, service in services.items() if one != name]
            kept = {pid for other in others for pid in (other, *below(other))}
            for pid in set(below(os.getpid())) - kept:
                end(pid)
            services[name].wait()
            if not left:
                raise
    return None


def started(folder: Path, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A service, which writes its log into the folder."""
    environment = {
        **os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true",
        # A busy machine takes longer than Ray waits.
        "RAY_raylet_start_wait_time_s": "120", "RAY_agent_register_timeout_ms": "120000",
    }  # fmt: skip
    first, *rest = command
    with (folder / f"{name}.log").open("w") as log:
        return subprocess.Popen([program(first) or first, *rest], cwd=folder, env=environment, stdout=log, stderr=log)


def ready(folder: Path, services: dict[str, subprocess.Popen[bytes]], name: str) -> None:
    """Waits until a service answers; RuntimeError where it ends instead."""
    log, service = folder / f"{name}.log", services[name]
    port = {"mlflow": MLFLOW, "postgres": POSTGRES}.get(name)

    def there() -> bool:
        if service.poll() is not None:
            raise RuntimeError(f"{name} ended: {log.read_text()[-1000:]}")
        return "Ray runtime started" in log.read_text() if port is None else answers(port)

    if not wait_for(there):
        raise RuntimeError(f"{name} does not answer; its log is {log}")


def answers(port: int) -> bool:
    """Whether somebody listens on the port of loopback."""
    with socket.socket() as tried:
        tried.settimeout(5)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def alone() -> bool:
    """Whether this network has nothing but loopback already."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


def entering(holder: int) -> list[str]:
    """What a command starts with to run in the namespace of a process."""
    if alone():
        return []
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", "--target", str(holder), *user, "--net", "--"]


def program(name: str) -> str | None:
    """Where a program is: beside this Python, in PATH, or where Debian keeps PostgreSQL's."""
    debian = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", ""), *debian]
    return shutil.which(name, path=os.pathsep.join(places))


def known(folder: Path) -> dict | None:
    """What a running cluster wrote down of itself; None where none runs."""
    try:
        state: dict = json.loads((folder / STATE).read_text())
    except FileNotFoundError:
        return None
    return state if alive(state["holder"]) else None


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def below(pid: int) -> list[int]:
    """The processes that a process started, and theirs."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(parent, []).append(int(place.name))
    found, left = [], [pid]
    while left:
        left = [child for parent in left for child in parents.get(parent, [])]
        found += left
    return found


def kill(pid: int) -> None:
    """Kills a process and all below it, at once."""
    for one in (*below(pid), pid):
        end(one)


def end(pid: int) -> None:
    """Kills a process that may have ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(condition) -> bool:  # type: ignore[no-untyped-def]
    """Whether the condition came true in time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def fail(why: str) -> int:
    """Says why nothing was done; the exit code."""
    print(f"error: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
