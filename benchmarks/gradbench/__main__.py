"""Speaks GradBench's protocol on standard input and output.

python -m benchmarks.gradbench [--threads N]
"""

import argparse
import os
import sys


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradbench", description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads of compiled code (1)")
    parser.add_argument("--multithreaded", action="store_true", help="as many threads as there are cores")
    given = parser.parse_args()
    threads = len(os.sched_getaffinity(0)) if given.multithreaded else given.threads
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)  # read when NumPy is imported
    from benchmarks.gradbench.protocol import serve

    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # nothing but replies may be written to standard output
    serve(sys.stdin, replies, threads)


main()
