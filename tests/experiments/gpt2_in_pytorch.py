#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gpt2_in_pytorch.py PROGRAMS: the network that PyTorch trains beside troupe's is the one that the references define, as large as
`train` says, in a plain loop, by replicas and in pipelines; what cannot be measured is said. Skipped (77) where there is no
PyTorch."""
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(root / "tests/golden/runs"), str(root / "experiments/benchmarks")]
try:
    import numpy  # noqa: F401
    import torch
except ImportError:
    system = "/usr/bin/python3"
    if sys.executable != system and os.access(system, os.X_OK):
        os.execv(system, [system, *sys.argv])
    print("there is no PyTorch here")
    sys.exit(77)

import gpt2_in_pytorch as measured
import networks
from inputs import weights_of

script = root / "experiments/benchmarks/gpt2_in_pytorch.py"
case = dict(model="gpt", layers=2, d=16, heads=2, T=12, V=23)
sizes = ["--layers", "2", "--d-model", "16", "--heads", "2", "--seq", "12", "--vocab", "23", "--batch", "4", "--microbatches", "2"]


def is_the_references(tied):
    """Loss and all gradients, in double, of weights that show every mistake: none is 0 or 1."""
    c = dict(case, tied=tied)
    reference = {n: torch.from_numpy(v).double().requires_grad_() for n, v in weights_of(c).items()}
    model = measured.Gpt(2, 16, 2, 12, 23, tied).double()
    own = dict(model.named_parameters())
    assert own.keys() == reference.keys(), own.keys() ^ reference.keys()

    def turned(name, value):  # [in, out] there
        return value.T if re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name) else value
    with torch.no_grad():
        for n, p in own.items():
            p.copy_(turned(n, reference[n]))
    x, y = torch.randint(23, (2, 3, 12))
    torch.set_default_dtype(torch.float64)
    want = networks.run(c, reference, x, y)[0]
    torch.set_default_dtype(torch.float32)
    want.backward()
    loss = model(x, y)
    loss.backward()
    assert abs(loss - want) < 1e-6, (loss, want)  # its logits are rounded to fp32 there
    for n, p in own.items():
        off = (p.grad - turned(n, reference[n].grad)).abs().max()
        assert off < 1e-6, (n, off)


def is_as_large_as_troupes(programs, tied):
    own = measured.parameters_of(measured.Gpt(2, 16, 2, 12, 23, tied))
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([f"{programs}/train", *sizes, *(["--tied"] if tied else []), "--steps", "1", "--stages", "1", "--json", "results.json"],
                             cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        said = re.search(r"(\d+) parameters", ran.stdout + ran.stderr)
        assert said and int(said[1]) == own, (own, ran.stdout, ran.stderr)


def has_124_million():
    assert measured.parameters_of(measured.Gpt(12, 768, 12, 1024, 50304, True)) == 124_475_904


def lines_of(*arguments):
    ran = subprocess.run([sys.executable, script, *sizes, "--seconds", "0.1", *arguments], capture_output=True, text=True)
    return ran, [json.loads(line) for line in ran.stdout.splitlines()]


def prints_a_line_each():
    for precision in ("bf16", "fp32"):
        ran, (eager, compiled) = lines_of("--device", "cpu", "--precision", precision, "--tied")
        assert ran.returncode == 0, ran.stderr
        assert eager["what"] == "eager" and eager["tokens_per_second"] > 0 and eager["steps"] >= 5, eager
        assert compiled["what"] == "compiled" and ("failed" in compiled or compiled["tokens_per_second"] > 0), compiled


def prints_only_the_named():
    ran, lines = lines_of("--device", "cpu", "--only", "compiled,eager")
    assert [line["what"] for line in lines] == ["compiled", "eager"], (lines, ran.stderr)
    for names, why in (("eagre", "there is no 'eagre'"), ("eager,graphs", "say --device cuda")):
        ran, lines = lines_of("--device", "cpu", "--only", names)
        assert ran.returncode == 2 and not lines and why in ran.stderr, ran


def rounds_of(row, ranks, blocks, *arguments):
    program = root / "experiments/benchmarks/rounds_in_pytorch.py"
    ran = subprocess.run([sys.executable, "-B", program, "--row", row, "--ranks", str(ranks), "--blocks", blocks, "--device", "cpu",
                          "--precision", "fp32", "--threads", "2", *sizes, "--layers", "4", *arguments],
                         input="1\n2\n", capture_output=True, text=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert lines, ran.stderr
    return lines


def each_row_trains_the_same_network():
    """The loss and the number of parameters of each program are the plain loop's; later steps are of the same training."""
    plain, *rounds = rounds_of("plain", 1, "4")
    assert len(rounds) == 2 and all(r["seconds"] > 0 for r in rounds), rounds
    is_old = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6)
    for row, blocks in (("ddp", "4"), ("1f1b", "2,2"), ("interleaved", "1,1,1,1"), ("zb-v", "1,1,1,1")):
        first, *rounds = rounds_of(row, 2, blocks)
        if is_old and row != "ddp":
            assert "2.6 and newer have" in first["failed"], first
            continue
        assert "failed" not in first, first
        assert first["parameters"] == plain["parameters"], (row, first, plain)
        for key in ("loss", "later_loss"):
            assert abs(first[key] - plain[key]) < 1e-5, (row, key, first, plain)
        assert plain["later_loss"] < plain["loss"] - 1e-4, plain
        assert len(rounds) == 2 and all(r["seconds"] > 0 for r in rounds), rounds
        tied = rounds_of(row, 2, blocks, "--tied")[0]
        assert row == "ddp" or "leave --tied out" in tied["failed"], tied


def bench_measures_beside_it(programs):
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([f"{programs}/bench", "--beside", "pytorch:plain,ddp", *sizes, "--json", "r.json"], cwd=folder,
                             capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable})
        assert ran.returncode == 0, ran
        beside = json.loads(Path(folder, "r.json").read_text())["beside"]
    assert beside["pytorch"]["torch"] == torch.__version__, beside
    assert all(row["ratio"] > 0 and row["failure"] is None for row in beside["rows"]), beside


def what_fails_is_said():
    def refuse(why):
        def function(*_):
            raise RuntimeError(why + "\nand where")
        return function
    arguments = [str(script), *sizes, "--seconds", "0.1", "--device", "cpu"]

    def lines(expected_code):
        told, sys.argv = io.StringIO(), arguments
        try:
            with contextlib.redirect_stdout(told):
                measured.main()
        except SystemExit as end:
            assert end.code == expected_code, end.code
        return [json.loads(line) for line in told.getvalue().splitlines()]
    torch.compile = refuse("no compiler")
    eager, compiled = lines(0)
    assert eager["tokens_per_second"] > 0 and compiled["failed"] == "RuntimeError: no compiler", compiled
    measured.seconds_of_steps = refuse("out of memory")
    eager, _ = lines(1)
    assert eager["failed"] == "RuntimeError: out of memory", eager


def without_a_gpu_nothing_is_measured():
    ran, lines = lines_of("--device", "cuda")
    assert ran.returncode == 77 and not lines and "finds no GPU" in ran.stderr, ran


def without_pytorch_nothing_is_measured():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "torch.py").write_text("raise ImportError('none here')")
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder})
    assert ran.returncode == 77 and "cannot be imported: none here" in ran.stderr, ran


for tied in (False, True):
    is_the_references(tied)
    is_as_large_as_troupes(Path(sys.argv[1]).resolve(), tied)
has_124_million()
prints_a_line_each()
prints_only_the_named()
if not torch.cuda.is_available():
    without_a_gpu_nothing_is_measured()
without_pytorch_nothing_is_measured()
each_row_trains_the_same_network()
bench_measures_beside_it(Path(sys.argv[1]).resolve())
what_fails_is_said()
