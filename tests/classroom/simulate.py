"""A class on this machine: students sign in to a JupyterHub, run a lesson cell by cell and restart in the middle.

  .venv/bin/python tests/classroom/simulate.py 20 [--lesson 02_many_heads] [--think 3] [--seed 0]

The hub runs assets/classroom/jupyterhub_config.py, as an open session, in a temporary folder with a copy of the course
as it lies here. It needs git, the packages of assets/classroom/requirements.txt and configurable-http-proxy. The exit
code is 1 if anything failed.
"""

import argparse
import asyncio
import os
import platform
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx
import psutil
from student import LIMIT, Report, Student

ROOT = Path(__file__).resolve().parents[2]
WHOLE, SAMPLE = 3600, 10  # seconds: for the class, between two looks at memory


def teachers_copy(folder: Path) -> Path:
    """The course as a Git checkout with a branch, which the students' copies need; changes not committed are in it."""
    course, git = folder / "teacher", ["git", "-c", "user.name=teacher", "-c", "user.email="]
    shutil.copytree(ROOT, course, ignore=shutil.ignore_patterns(".venv", ".git", "*cache*", "shared"))
    for step in (["init", "--quiet", "--initial-branch=main"], ["add", "."], ["commit", "--quiet", "--message=course"]):
        subprocess.run([*git, *step], cwd=course, check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
    return course


@contextmanager
def hub(folder: Path, password: str, report: Report):
    """JupyterHub with the course's configuration; gives its URL. Whatever it started ends with it."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    port, hub_port, proxy_port = (one.getsockname()[1] for one in sockets)
    for one in sockets:
        one.close()
    url, log = f"http://127.0.0.1:{port}", folder / "log.txt"
    command = [
        sys.executable,
        "-m",
        "jupyterhub",
        f"--config={teachers_copy(folder) / 'assets/classroom/jupyterhub_config.py'}",
        f"--JupyterHub.bind_url={url}",
        f"--JupyterHub.hub_port={hub_port}",
        f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{proxy_port}",
    ]
    own = {
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "MHSA_CLASS_PASSWORD": password,
        "MHSA_CLASS_ROOT": "1",
    }
    with open(log, "w") as stream:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | own, stdout=stream, stderr=stream)
    try:
        for wait in range(240):
            try:
                httpx.get(f"{url}/hub/health").raise_for_status()
                break
            except httpx.HTTPError:
                if process.poll() is not None or wait == 239:
                    raise RuntimeError(f"the hub did not start:\n{log.read_text()[-3000:]}") from None
                time.sleep(0.5)
        yield url
    finally:
        if process.poll() is None:
            process.terminate()  # the hub stops its servers, they their kernels
        for one in psutil.wait_procs(processes(folder), 60)[1]:
            report.failures.append(f"still running a minute after the hub's end: {one}")
            one.kill()
        process.wait()
        if report.failures:
            print(f"The hub's log is kept: {shutil.copy(log, Path(tempfile.gettempdir()) / 'mhsa-hub-log.txt')}")


def processes(folder: Path) -> list[psutil.Process]:
    """All that the hub has started, in whatever way: their HOME is in the folder."""

    def home(process: psutil.Process) -> str:
        try:
            return process.environ().get("HOME", "")
        except psutil.Error:  # another user's, or it has just ended
            return ""

    return [process for process in psutil.process_iter() if home(process).startswith(str(folder))]


def memory(folder: Path) -> dict[str, tuple[float, float]]:
    """MB (PSS, USS) of each student's server and kernels together; "": the hub, its proxy and its culler.

    PSS counts a page that n processes share as 1/n of it, so that sums are right; USS leaves shared pages out.
    """
    sums: dict[str, tuple[float, float]] = {}
    for process in processes(folder):
        try:
            student, used = process.environ().get("JUPYTERHUB_USER", ""), process.memory_full_info()
        except psutil.Error:
            continue
        pss, uss = sums.get(student, (0, 0))
        sums[student] = pss + used.pss / 1e6, uss + used.uss / 1e6
    return sums


async def hold_class(count: int, lesson: str, think: float = 0, seed: int = 0) -> Report:
    """The class from the hub's start to its end."""
    report, password, path = Report(), secrets.token_hex(8), f"course/notebooks/{lesson}.ipynb"
    with tempfile.TemporaryDirectory() as name, hub(folder := Path(name), password, report) as url:
        clients = [httpx.AsyncClient(base_url=url, follow_redirects=True, timeout=LIMIT) for _ in range(count)]
        students = [Student(f"student{n}", client, think, seed, report) for n, client in enumerate(clients)]
        running = asyncio.gather(*(one.attend(password, path, comes_back=one is students[0]) for one in students))
        try:
            async with asyncio.timeout(WHOLE):
                while not running.done():
                    await asyncio.wait([running], timeout=SAMPLE)
                    report.end = await asyncio.to_thread(memory, folder)
                    report.peak = max(report.peak, report.end, key=lambda sample: total(sample, 0))
        finally:
            running.cancel()
            for one in students:
                one.close()
                await one.client.aclose()
    return report


def total(sample: dict, kind: int) -> float:
    return sum(used[kind] for used in sample.values())


def tell(report: Report) -> None:
    for what, values in (
        ("server started", report.starts),
        ("first output, cell 0, with torch", report.first_cells),
        ("first output, other cells", report.other_cells),
    ):
        if len(values) > 1:
            cuts = statistics.quantiles(values, n=100, method="inclusive")
            print(f"{what:33}p50 {cuts[49]:7.3f} s   p95 {cuts[94]:7.3f} s   most {max(values):7.3f} s")
    for when, sample in (("at the peak", report.peak), ("at the end", report.end)):
        for kind, what in enumerate(("PSS", "USS")):
            each = [used[kind] for name, used in sample.items() if name] or [0]
            print(
                f"{what} {when:12} a student {statistics.mean(each):4.0f} MB, most {max(each):4.0f} MB   "
                f"hub and proxy {sample.get('', (0, 0))[kind]:4.0f} MB   all {total(sample, kind):6.0f} MB"
            )
    print(f"{len(report.failures)} failures", *report.failures, sep="\n  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("students", type=int)
    parser.add_argument("--lesson", default="02_many_heads")
    parser.add_argument("--think", type=float, default=3, help="mean seconds before each cell")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lessons = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    if options.students < 1 or options.think < 0:
        parser.error(f"students={options.students}, think={options.think}: at least one student and 0 s are needed")
    if options.lesson not in lessons:
        parser.error(f"--lesson {options.lesson} is none; these are: {', '.join(lessons)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what runs is ended too
    print(
        f"{datetime.now():%Y-%m-%d %H:%M}  {platform.machine()}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB, load before the start {os.getloadavg()[0]:.1f}\n"
        f"{options.students} students, lesson {options.lesson}, mean think time {options.think:g} s",
        flush=True,
    )
    begun = time.perf_counter()
    report = asyncio.run(hold_class(options.students, options.lesson, options.think, options.seed))
    print(f"{report.cells} cells in {time.perf_counter() - begun:.0f} s, {report.reconnected} times channels closed")
    tell(report)
    sys.exit(bool(report.failures))


if __name__ == "__main__":
    main()
