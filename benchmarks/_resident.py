"""What a process has in memory, and how much of it comes with a CUDA build of PyTorch only."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil

_INTERVAL = 0.1  # seconds between looks
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ +(/.+)$")
_CUDA = re.compile(  # triton is no part of a CPU build either
    r"/nvidia/|/triton/|/cuda/|/lib(torch_cuda|c10_cuda|cuda|cudart|cublas|cudnn|cufft|cupti|curand|cusolver"
    r"|cusparse|nccl|nvrtc|nvJitLink|nvshmem|nvToolsExt)[^/]*\.so"
)


@dataclass
class Memory:
    """Bytes resident in a process and its children.

    Attributes
    ----------
    peak
        The most so far.
    cuda
        Of these, pages of files that only a CUDA build of PyTorch has.
    """

    peak: float = 0.0
    cuda: float = 0.0

    @property
    def without_cuda(self) -> float:
        """The peak of a CPU build, as far as it can be told from a CUDA build."""
        return self.peak - self.cuda


@contextmanager
def watched(process_id: int) -> Iterator[Memory]:
    """Watch a process for as long as the context lasts; it must be alive at the end."""
    memory, done = Memory(), Event()
    process = psutil.Process(process_id)
    watcher = Thread(target=_watch, args=(process, memory, done), daemon=True)
    watcher.start()
    try:
        yield memory
        memory.cuda = cuda_pages(process_id)
    finally:
        done.set()
        watcher.join()
    memory.peak = max(memory.peak, _high_water_mark(process_id))


def _watch(process: psutil.Process, memory: Memory, done: Event) -> None:
    while not done.wait(_INTERVAL):
        memory.peak = max(memory.peak, sum(_resident(process)))


def _resident(process: psutil.Process) -> Iterator[int]:
    """Bytes of the process and of each child, those that end meanwhile left out."""
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                yield one.memory_info().rss


def _high_water_mark(process_id: int) -> int:
    """The most that was resident in this process alone, as Linux keeps it; 0 elsewhere."""
    with suppress(OSError):
        status = Path(f"/proc/{process_id}/status").read_text()
        if found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.M):
            return 1024 * int(found[1])
    return 0


def cuda_pages(process_id: int) -> int:
    """Bytes of such libraries that are resident in a process; 0 where this cannot be told."""
    try:
        lines = Path(f"/proc/{process_id}/smaps").read_text().splitlines()
    except OSError:
        return 0
    return cuda_pages_of(lines)


def cuda_pages_of(lines: list[str]) -> int:
    """The same from the lines of ``smaps``."""
    total, counted = 0, False
    for line in lines:
        if re.match(r"^[0-9a-f]+-[0-9a-f]+ ", line):
            mapping = _MAPPING.match(line)
            counted = bool(mapping and _CUDA.search(mapping[1]))
        elif counted and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total
