"""How often each byte occurs in a file: this one, or that of the first argument."""

import sys

import numpy as np

import invar as iv


@iv.kernel(threadgroup=256)
def histogram(data: iv.Buffer[iv.u8], bins: iv.Buffer[iv.u32]):
    """Counts in threadgroup memory first, where threads of other threadgroups do not wait."""
    t = iv.thread_index_in_threadgroup()
    own = iv.threadgroup_alloc(iv.u32, 256)
    first, step = iv.thread_position_in_grid("x"), iv.threads_per_grid("x")
    for i in iv.range(iv.u64(first), len(data), step):
        iv.atomic_add(own, data[i], 1)
    iv.barrier("threadgroup", "threadgroup")
    iv.atomic_add(bins, t, own[t])


def run(file=__file__):
    """Counts the bytes of a file; gives the largest difference to NumPy."""
    data, bins = np.fromfile(file, np.uint8), np.zeros(256, np.uint32)
    histogram[1024, 256](data, bins)
    return int(np.abs(bins.astype(np.int64) - np.bincount(data, minlength=256)).max())


if __name__ == "__main__":
    print(f"largest difference to NumPy: {run(*sys.argv[1:])}")
