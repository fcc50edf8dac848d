"""Whether an export of many rows costs more memory, or more time a row, than
one of few.
"""

import pathlib
import threading
import time

import archive
import report
import server

SIZES = (50_000, 1_000_000, 5_000_000)

SAMPLE_SECONDS = 0.001


def private_kb(pid):
    """Memory that a process has for itself, 0 if there is none.

    Its peak as the kernel tells it, VmHWM, is of no use: it counts every page
    of the server's shared buffers that the process has touched.
    """
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


class Watcher(threading.Thread):
    """Samples the exporter that appears while it runs."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target = target
        self.ended = threading.Event()
        self.peak_kb = 0
        self.samples = 0

    def run(self):
        pid = None
        while not self.ended.is_set():
            pid = pid or self.find()
            kilobytes = private_kb(pid) if pid else 0
            if kilobytes:
                self.peak_kb = max(self.peak_kb, kilobytes)
                self.samples += 1
            time.sleep(SAMPLE_SECONDS)

    def find(self):
        return next(filter(server.is_exporter, self.target.children()), None)


def peak(target, window):
    """kB of an exporter that has made nothing but this export, at most."""
    target.forget_archives()
    target.end_exporters()
    watcher = Watcher(target)
    watcher.start()
    target.export(window)
    watcher.ended.set()
    watcher.join()
    if watcher.samples < 10:
        raise server.Failed(f"only {watcher.samples} samples of an exporter")
    return watcher.peak_kb


def memory(bench):
    """The most private memory of the exporter, over an idle session's."""
    target = bench.server()
    idle = server.Session(target)
    idle_kb = private_kb(idle.pid)
    idle.close()
    sizes = bench.sizes(*SIZES)
    peaks = []
    for rows in sizes:
        window = bench.window("data", rows)
        bench.note(f"memory of {rows} rows")
        peaks.append(max(peak(target, window) for _ in range(
            bench.runs(3) if rows < 5_000_000 else 1)) - idle_kb)
    result = [report.measured(
        "peak private memory of the exporter over an idle session",
        report.rows_text(rows), kilobytes / 1024,
        lambda value: f"{value:.1f} MB", 5.0)
              for rows, kilobytes in zip(sizes, peaks)]
    result.append(report.measured(
        "the same, largest less smallest", "all sizes",
        (max(peaks) - min(peaks)) / 1024, lambda value: f"{value:.1f} MB",
        1.0))
    return result


def growth(bench):
    """Wall time a row, claim to READY, of many rows against few."""
    target = bench.server()
    sizes = bench.sizes(*SIZES)
    few, many = min(sizes), max(sizes)

    def microseconds(rows):
        target.forget_archives()
        window = bench.window("data", rows)
        return 1e6 / rows * archive.run_product(target, window)

    rivals, ours = report.in_turns(
        bench.runs(3), lambda: microseconds(few), lambda: microseconds(many),
        bench.note)
    return [report.compared(
        "time a row, claim to READY", report.rows_text(many),
        report.rows_text(few), ours, rivals,
        lambda value: f"{value:.2f} us", 1.15)]
