"""Work spread over processes, since arithmetic on large numbers holds Python's lock.

Workers are programs of their own, which get their work through a pipe. Unlike the processes of
``multiprocessing`` they do not import the main script again. So they work in scripts without a
guard, in notebooks and in daemons, and nothing is forked.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

from ...errors import RunError

# Pieces of work that are worth the start of a process.
WORTH = 4


def spread(
    start: Callable[..., Callable[[Any], Any]],
    shared: tuple[Any, ...],
    pieces: Sequence[Any],
) -> Iterator[Any]:
    """Yield ``start(*shared)(piece)`` for every piece, in order.

    There are as many processes as kernels have threads (:func:`vertimrf.kernels.jit.threads`), but
    this process alone does little work.

    Args:
        start: class or function on the top level of a module; each process calls it once.
        shared: its arguments.
        pieces: arguments of what it returns.

    Yields:
        The results.

    Raises:
        RunError: a process ended before its work was done.
        Exception: what the work raises.
    """
    # Workers do without it.
    import numba

    several = min(numba.get_num_threads(), len(pieces) // WORTH)
    if several <= 1:
        work = start(*shared)
        yield from map(work, pieces)
        return
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def done(piece: Any) -> Any:
        worker = idle.get()
        try:
            return worker.ask(piece)
        finally:
            idle.put(worker)

    with ExitStack() as stack:
        for _ in range(several):
            worker = _Worker(start, shared)
            stack.callback(worker.close)
            idle.put(worker)
        pool = stack.enter_context(ThreadPoolExecutor(several))
        stack.callback(pool.shutdown, cancel_futures=True)
        yield from pool.map(done, pieces)


class _Worker:
    """A process that does pieces of work, one at a time."""

    def __init__(self, start: Callable[..., Any], shared: tuple[Any, ...]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._start = pickle.dumps((start, shared))

    def ask(self, piece: Any) -> Any:
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        try:
            sink.write(self._start)
            self._start = b""
            pickle.dump(piece, sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
            good, answer = pickle.load(source)
        except (BrokenPipeError, EOFError):
            raise RunError(
                "A process that counts under encryption ended before its work was done, perhaps for lack of memory: start "
                "the command again, with fewer threads."
            ) from None
        if not good:
            raise answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Do work from standard input until it ends."""
    # The parent process ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        start, shared = pickle.load(source)
        work = start(*shared)
        while True:
            answer: tuple[bool, Any]
            piece = pickle.load(source)
            try:
                answer = True, work(piece)
            except Exception as error:
                answer = False, error
            pickle.dump(answer, sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
