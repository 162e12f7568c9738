# SPDX-License-Identifier: BSD-3-Clause
"""Trains PyTorch's modules in one stage and by PyTorch's own loop, in turns, and prints milliseconds of a step.
Usage: ./troupe python experiments/benchmarks/modules_in_pytorch.py [--threads N] [--batch N] [--steps N] [--rounds N]"""

import argparse
import statistics
import time

import numpy
import torch
import troupe
from torch import nn

WIDTH, CLASSES, SAMPLES = 512, 10, 1024


def network():
    torch.manual_seed(1)
    blocks = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))]
    return nn.Sequential(*blocks, nn.Linear(WIDTH, CLASSES))


def step_of(times):
    """Milliseconds of a step, without the first quarter."""
    first = len(times) // 4
    return 1000 * (times[-1] - times[first]) / (len(times) - 1 - first)


def in_a_stage(modules, inputs, labels, asked):
    times = []
    troupe.train(model=modules, data=troupe.Data(inputs, labels), schedule="gpipe", stages=1, batch=asked.batch, microbatches=1, steps=asked.steps,
                 optimizer="sgd", lr=0.1, threads=asked.threads, progress=lambda *_: times.append(time.perf_counter()))
    return step_of(times)


def by_pytorch(inputs, labels, asked):
    torch.set_num_threads(asked.threads)
    module, loss_function, times = network(), nn.CrossEntropyLoss(), []
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    inputs, labels = torch.from_numpy(inputs), torch.from_numpy(labels).long()
    for _ in range(asked.steps):
        batch = torch.randperm(SAMPLES)[:asked.batch]
        optimizer.zero_grad()
        loss = loss_function(module(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(time.perf_counter())
    return step_of(times)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("threads", 1), ("batch", 256), ("steps", 60), ("rounds", 5)):
        options.add_argument("--" + name, type=int, default=usual)
    asked = options.parse_args()
    random = numpy.random.default_rng(1)
    inputs, labels = random.normal(size=(SAMPLES, WIDTH)).astype("float32"), random.integers(0, CLASSES, SAMPLES).astype("int32")
    torch.set_num_threads(asked.threads)
    modules = troupe.torch_network(network(), example=inputs[:2])
    rounds = [(in_a_stage(modules, inputs, labels, asked), by_pytorch(inputs, labels, asked)) for _ in range(asked.rounds)]
    for ours, theirs in rounds:
        print(f"stage {ours:.2f} ms, PyTorch {theirs:.2f} ms: {ours / theirs:.3f}")
    print(f"PyTorch {torch.__version__}, {asked.threads} threads, {asked.batch} samples: median {statistics.median(a / b for a, b in rounds):.3f}")


main()
