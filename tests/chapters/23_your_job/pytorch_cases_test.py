#!/usr/bin/env python3
"""PyTorch's own tests of DistributedDataParallel on a CPU, which are inside its wheel, pass under
the guard, and it accuses none of them."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

folder = tempfile.TemporaryDirectory()
os.environ.update(BACKEND="gloo", WORLD_SIZE="2", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
                  TEMP_DIR=folder.name)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "chapters" / "23_your_job"))
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.distributed.fsdp  # noqa: E402

try:
    from torch.testing._internal.distributed import distributed_test
except ImportError as error:
    print(f"SKIPPED: PyTorch's own tests lack something here: {error}")
    sys.exit(77)
import ddp_guard  # noqa: E402

LOG = pathlib.Path(folder.name) / "findings"


class Cases(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Each test in two forked ranks, watched with a check after every step."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, rank, test_name, file_name, pipe, **options):
        guard = ddp_guard.watch(every=1)
        tell = guard.checks.tell

        def tell_the_log(kind, *place, **options):
            with LOG.open("a") as log:
                log.write(f"{test_name}: {kind}\n")
            tell(kind, *place, **options)
        guard.checks.tell = tell_the_log
        super()._run(rank, test_name, file_name, pipe, **options)


def main():
    torch.set_num_threads(1)
    names = [name for name in sorted(dir(Cases)) if not re.search("cuda|nccl|gpu", name)
             and re.match("test_.*(ddp|distributed_?data)", name, re.IGNORECASE)]
    with open(os.devnull, "w") as nowhere:
        runner = unittest.TextTestRunner(stream=nowhere)
        result = runner.run(unittest.TestSuite(Cases(name) for name in names))
    passed = len(names) - len(result.skipped) - len(result.failures) - len(result.errors)
    print(f"{passed} of {len(names)} tests pass under the guard, {len(result.skipped)} need GPUs")
    for test, words in result.failures + result.errors:
        print(f"FAILED: {test}: {words[-1500:]}")
    findings = LOG.read_text() if LOG.exists() else ""
    if findings:
        print(f"FAILED: the guard accuses:\n{findings}")
    if passed < 4:
        print("FAILED: so few tests say nothing")
    sys.exit(bool(findings) or not result.wasSuccessful() or passed < 4)


if __name__ == "__main__":
    main()
