#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What rounding to bf16 makes of the reference runs.

  bf16.py > bf16.json     trains the cases in float64, values rounded to bf16 where troupe's `--precision bf16` rounds them, and
                          writes how far each is from the case's golden
  bf16.py exact           the same without rounding: how far this network is from the golden's
  bf16.py draws N         the same N times, each with noise as small as fp32's before values are rounded, so that those between
                          two values of bf16 go either way: medians and largest differences
  bf16.py short > bf16_short.json
                          losses of two steps of three samples each: so few values that in many cases none goes the other way
                          in fp32

Where troupe rounds (docs/precision.md; models/layers): what layers hand each other and keep for the backward,
and the gradients of both, when they are stored; the operands of products of matrices, when they are multiplied, in a backward
too. Everything else is float64 here and fp32 there: sums, biases, gains, embeddings, statistics, logits, loss, the gradient
that goes into a norm, rows on their way to experts, the gate, convolutions, gradients of weights, the optimizer.

  loss         the largest difference of a step's loss or of the evaluation's, relative to the larger of it and 1
  movement     of the tensor that is farthest off: norm of the difference over the norm of how far the golden moved it (or of
               1/500 of its values, if that is more), without biases of keys, whose gradient is 0

Cases are left out in which rounding moves a row to another expert: which rows those are says nothing.
"""
import atexit
import functools
import json
import math
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.autograd import Function

import networks
import training
from cases import CASES
from inputs import weights_of

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

mode = (sys.argv[1:] or [""])[0]


def rounded(x):
    if mode == "exact":
        return x
    if mode == "draws":
        x = x * (1 + 2.0 ** -24 * torch.randn_like(x))
    return x.float().bfloat16().to(x.dtype)


class Store(Function):
    """Stored as bf16, and so is its gradient."""

    @staticmethod
    def forward(ctx, x):
        return rounded(x)

    @staticmethod
    def backward(ctx, dy):
        return rounded(dy)


class StoreValue(Function):
    """Stored as bf16, but its gradient is not."""

    @staticmethod
    def forward(ctx, x):
        return rounded(x)

    @staticmethod
    def backward(ctx, dy):
        return dy


class Product(Function):
    """x (.., K) times w (K, N)."""

    @staticmethod
    def forward(ctx, x, w):
        x, w = rounded(x), rounded(w)
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, dy):
        (x, w), dy = ctx.saved_tensors, rounded(dy)
        return dy @ w.T, x.flatten(0, -2).T @ dy.flatten(0, -2)


class Gelu(Function):
    """Its output and its slope are stored, and the gradient of its input."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            y = F.gelu(at, approximate="tanh")
            (slope,) = torch.autograd.grad(y.sum(), at)
        ctx.save_for_backward(rounded(slope))
        return rounded(y.detach())

    @staticmethod
    def backward(ctx, dy):
        return rounded(dy * ctx.saved_tensors[0])


class Attention(Function):
    """Of stored q, k and v (B, H, T, D). Weights are rounded before they are divided by their sum, and in the backward behind
    that; the sum of a row's weights times their gradients is that of its output, as stored, times the output's gradient."""

    @staticmethod
    def forward(ctx, q, k, v):
        T, scale = q.shape[-2], q.shape[-1] ** -0.5
        later = torch.ones(T, T, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-2, -1) * scale).masked_fill(later, -math.inf)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        y = rounded(rounded(weights) @ v / weights.sum(-1, keepdim=True))
        ctx.save_for_backward(q, k, v, scores.softmax(-1), y)
        return y

    @staticmethod
    def backward(ctx, dy):
        q, k, v, p, y = ctx.saved_tensors
        dy = rounded(dy)
        ds = p * (dy @ v.transpose(-2, -1) - (y * dy).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        ds, p = rounded(ds), rounded(p)
        return ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ dy


class Times(Function):
    """The same forward; the gradient is so many times as large. With it gradients have troupe's units when they are rounded:
    those of the sum over samples, divided by their number in the update."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.factor, None


store, store_value, product = Store.apply, StoreValue.apply, Product.apply


def up_down(w, p, x):
    x = Gelu.apply(product(x, w[p + "c_fc.weight"]) + w[p + "c_fc.bias"])
    return product(x, w[p + "c_proj.weight"]) + w[p + "c_proj.bias"]


def logits_of(c, w, x, told, training):
    if "T" not in c:
        return logits_of_images(c, w, x)
    B, T = x.shape
    d, H = c["d"], c["heads"]

    def norm(p, h):
        return F.layer_norm(h, (d,), w[p + ".weight"], w[p + ".bias"], 1e-5)
    h = store(w["transformer.wte.weight"][x] + w["transformer.wpe.weight"][:T])
    for i in range(c["layers"]):
        p = f"transformer.h.{i}."
        v = store_value(norm(p + "ln_1", h))
        qkv = store(product(v, w[p + "attn.c_attn.weight"]) + w[p + "attn.c_attn.bias"])
        a = Attention.apply(*qkv.view(B, T, 3, H, d // H).permute(2, 0, 3, 1, 4))
        a = a.transpose(1, 2).reshape(B, T, d)
        h = store(h + product(a, w[p + "attn.c_proj.weight"]) + w[p + "attn.c_proj.bias"])
        v = norm(p + "ln_2", h)
        if c["model"] == "gpt" or i % 2 == 0:
            y = up_down(w, p + "mlp.", store_value(v))
        else:  # rows to experts, and what these make of them, are not stored as bf16
            y = networks.moe(c, w, p + "mlp.", v.reshape(B * T, d), told, training).view(B, T, d)
        h = store(h + y)
    h = store_value(norm("transformer.ln_f", h))
    return product(h, w["transformer.wte.weight" if c.get("tied") else "lm_head.weight"].T)


def logits_of_images(c, w, x):
    if c["model"] == "lenet":
        for i in (1, 2):
            x = F.max_pool2d(F.relu(F.conv2d(x, w[f"conv{i}.weight"], w[f"conv{i}.bias"])), 2)
        x, last = store(x.flatten(1)), 3
    else:
        x, last = x.flatten(1), c["layers"]
    for i in range(1, last + 1):
        x = product(x, w[f"fc{i}.weight"].T) + w[f"fc{i}.bias"]
        x = store(F.relu(x)) if i < last else x
    return x


exact_run = networks.run


def run(c, w, x, y, first=0, training=True):
    mean_of = c["batch"] if c["schedule"] not in ("pipedream", "ampnet") else len(x) * c.get("update_every", 1)
    w = {k: Times.apply(v, 1 / mean_of) for k, v in w.items()}
    loss, right, told = exact_run(c, w, x, y, first, training)
    told["balance"] = Times.apply(told["balance"], mean_of)
    return Times.apply(loss, mean_of), right, told


def safetensors_of(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    about_all = json.loads(data[8:8 + size])
    return {n: np.frombuffer(data[8 + size:][slice(*t["data_offsets"])], "<f4").astype(np.float64).reshape(t["shape"])
            for n, t in about_all.items() if n != "__metadata__"}


def movement_difference(name, got, want, first):
    a, b, c = (v[name].astype(np.float64).ravel() for v in (got, want, first))
    if name.endswith("attn.c_attn.bias"):
        a, b, c = (np.delete(v, slice(len(v) // 3, 2 * len(v) // 3)) for v in (a, b, c))
    return np.linalg.norm(a - b) / max(np.linalg.norm(b - c), 2e-3 * np.linalg.norm(b))


def loads_of(out):
    return [(e["loads"], e["dropped"]) for e in out.get("experts", [])]


@functools.cache
def cases_folder():
    """The cases of cases.tar.gz, in a folder that lasts as long as the program."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with tarfile.open(Path(__file__).resolve().parent / "cases.tar.gz") as archive:
        archive.extractall(folder.name)
    return Path(folder.name)


def difference(name, c):
    """How far the case comes from its golden; None if rows go to other experts."""
    folder = cases_folder() / name
    want = json.loads((folder / "expected.json").read_text())
    out, final = training.train(c)
    if loads_of(out) != loads_of(want):
        return None
    losses = list(zip(out["loss"], want["loss"])) + [(out["evaluation"]["loss"], want["evaluation"]["loss"])]
    golden = safetensors_of(folder / "final.safetensors")
    movement, tensor = max((movement_difference(n, final, golden, weights_of(c)), n) for n in golden)
    return {"loss": max(abs(a - b) / max(abs(b), 1) for a, b in losses), "movement": movement, "tensor": tensor}


def draws(name, c, count):
    all_of_them = []
    for seed in range(count):
        torch.manual_seed(seed)
        all_of_them.append(difference(name, c))
    whole = [d for d in all_of_them if d]
    return {what: {"median": float(np.median([d[what] for d in whole])), "largest": max(d[what] for d in whole)}
            for what in ("loss", "movement")} | {"draws": len(whole)} if whole else None


def short(c):
    """As the case with --batch 3 --microbatches 3 --steps 2; the text is the case's own."""
    text = c.get("bytes", c["steps"] * c["batch"] * c.get("T", 0) + 1)
    return training.train(dict(c, batch=3, M=3, steps=2, bytes=text))[0]["loss"]


def three_digits(x):
    if isinstance(x, dict):
        return {k: three_digits(v) for k, v in x.items()}
    return float(f"{x:.3g}") if isinstance(x, float) else x


def main():
    networks.up_down, networks.logits_of, training.run = up_down, logits_of, run
    lines = []
    for name, c in CASES.items():
        if mode == "short":
            result = short(c)
        elif mode == "draws":
            result = three_digits(draws(name, c, int(sys.argv[2])))
        else:
            result = three_digits(difference(name, c))
        if result is not None:
            lines.append(f" {json.dumps(name)}: {json.dumps(result)}")
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
