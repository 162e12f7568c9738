# SPDX-License-Identifier: BSD-3-Clause
"""First weights and data, drawn from NumPy's PCG64, and the files that hold them."""
import json
import math
import struct

import numpy as np
import torch

import trial


def weights_of(c):
    """Initial weights under troupe's names: Hugging Face's GPT-2 names ([in, out] matrices), PyTorch's for images."""
    r = np.random.Generator(np.random.PCG64(1000 + c.get("weights", 1)))
    w = {}

    def add(name, *shape, scale, base=0.0):
        w[name] = (base + scale * r.standard_normal(shape)).astype(np.float32)

    def linear(name, out, *inner):
        bound = 1 / math.sqrt(math.prod(inner))
        add(name + ".weight", out, *inner, scale=bound)
        add(name + ".bias", out, scale=bound)
    if c["model"] == "lenet":
        linear("conv1", 6, 1, 5, 5)
        linear("conv2", 16, 6, 5, 5)
        linear("fc1", 120, 256)
        linear("fc2", 84, 120)
        linear("fc3", 10, 84)
        return w
    if c["model"] == "mlp":
        for i in range(1, c["layers"] + 1):
            linear(f"fc{i}", 10 if i == c["layers"] else c["d"], 784 if i == 1 else c["d"])
        return w
    d, V, T = c["d"], c["V"], c["T"]

    def up_down(p):
        add(p + "c_fc.weight", d, 4 * d, scale=d ** -0.5)
        add(p + "c_fc.bias", 4 * d, scale=0.05)
        add(p + "c_proj.weight", 4 * d, d, scale=(4 * d) ** -0.5)
        add(p + "c_proj.bias", d, scale=0.05)
    add("transformer.wte.weight", V, d, scale=0.3)
    add("transformer.wpe.weight", T, d, scale=0.1)
    for i in range(c["layers"]):
        p = f"transformer.h.{i}."
        for norm in ("ln_1", "ln_2"):
            add(p + norm + ".weight", d, scale=0.1, base=1.0)
            add(p + norm + ".bias", d, scale=0.05)
        add(p + "attn.c_attn.weight", d, 3 * d, scale=d ** -0.5)
        add(p + "attn.c_attn.bias", 3 * d, scale=0.05)
        add(p + "attn.c_proj.weight", d, d, scale=d ** -0.5)
        add(p + "attn.c_proj.bias", d, scale=0.05)
        if c["model"] == "gpt" or i % 2 == 0:  # "in every second block"
            up_down(p + "mlp.")
            continue
        add(p + "mlp.router.weight", d, c["experts"], scale=2 * d ** -0.5)
        if c["shared"]:
            up_down(p + "mlp.shared.")
        for e in range(c["experts"]):
            up_down(p + f"mlp.experts.{e}.")
    add("transformer.ln_f.weight", d, scale=0.1, base=1.0)
    add("transformer.ln_f.bias", d, scale=0.05)
    if not c.get("tied"):
        add("lm_head.weight", V, d, scale=d ** -0.5)
    return w


def text_of(c):
    """Bytes below V with something to learn: three in four follow from the one before."""
    r = np.random.Generator(np.random.PCG64(2000 + c["seed"]))
    n = c.get("bytes", c["steps"] * c["batch"] * c["T"] + 1)
    z = np.zeros(n, dtype=np.int64)
    jump, rnd = r.integers(0, 4, n), r.integers(0, c["V"], n)
    for t in range(1, n):
        z[t] = rnd[t] if jump[t] == 0 else (5 * z[t - 1] + 3) % c["V"]
    return z.astype(np.uint8)


def images_of(c):
    """Noise with a bright bar whose place is the label."""
    r = np.random.Generator(np.random.PCG64(3000 + c["seed"]))
    n = c["images"] + c["held"]
    labels = r.integers(0, 10, n).astype(np.uint8)
    pixels = r.integers(0, 160, (n, 28, 28)).astype(np.uint8)
    for i, k in enumerate(labels):
        pixels[i, 3 + 2 * k:6 + 2 * k, 4 + k:24] += 90
    return pixels, labels


def write_safetensors(path, w):
    header, at = {}, 0
    for n, v in w.items():
        header[n] = {"dtype": "F32", "shape": list(v.shape), "data_offsets": [at, at + v.nbytes]}
        at += v.nbytes
    h = json.dumps(header, separators=(",", ":")).encode()
    h += b" " * (-len(h) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h)
        for v in w.values():
            f.write(np.ascontiguousarray(v, dtype="<f4").tobytes())


def write_data(c, folder):
    """Returns what --data says."""
    if "T" in c:
        text_of(c).tofile(folder / "text.bin")
        return "text:{cases}/" + folder.name + "/text.bin,order=sequential"
    pixels, labels = images_of(c)

    def pair(prefix, part):
        n = len(labels[part])
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, n, 28, 28) + pixels[part].tobytes())
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, n) + labels[part].tobytes())
    if c.get("pair") == "t10k":  # nine tenths are trained on
        pair("t10k", slice(None))
        return "mnist:{cases}/" + folder.name + ",split=t10k"
    else:
        pair("train", slice(0, c["images"]))
        pair("t10k", slice(c["images"], None))
    return "mnist:{cases}/" + folder.name


class Stream:
    """troupe's random numbers (models/random.hpp), so that a gate's noise and the order of images can be repeated:
    SplitMix64's finaliser of a counter, keyed by a seed and a number or the FNV-1a hash of a name; normal by Box and
    Muller, number n from uniforms 2n and 2n+1. This is a format of troupe's; it and shuffled() are all that follows its code."""
    GOLDEN, MASK = 0x9e3779b97f4a7c15, (1 << 64) - 1

    def __init__(self, seed, name):
        h = name
        if isinstance(name, str):
            h = 0xcbf29ce484222325
            for b in name.encode():
                h = ((h ^ b) * 0x100000001b3) & self.MASK
        self.key = self.mix(self.mix((seed + self.GOLDEN) & self.MASK) ^ (h * self.GOLDEN & self.MASK))

    def mix(self, z):
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 & self.MASK
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb & self.MASK
        return z ^ (z >> 31)

    def bits(self, n):
        return self.mix((self.key + (n + 1) * self.GOLDEN) & self.MASK)

    def uniform(self, n):
        return (self.bits(n) >> 11) * 2.0 ** -53

    def normal(self, n):
        return math.sqrt(-2 * math.log(1 - self.uniform(2 * n))) * math.cos(2 * math.pi * self.uniform(2 * n + 1))


def shuffled(index, size, seed=1):
    """The item at a place of the run: each epoch its own order, by a Feistel network walked until it lands inside."""
    half = ((size - 1).bit_length() + 1) // 2
    mask, keys, value = (1 << half) - 1, Stream(seed, index // size), index % size
    while True:
        left, right = value >> half, value & mask
        for i in range(4):
            left, right = right, left ^ (keys.bits(right * 4 + i) & mask)
        value = left << half | right
        if value < size:
            return value


class Data:
    """Sample k of a text is bytes kT to kT+T of the whole, wrapping; the last tenth, cut into windows, is held out.
    Of images a batch is one epoch, in whatever order, or the order is troupe's."""

    def __init__(self, c):
        self.c = c
        if "T" in c:
            self.z = torch.from_numpy(text_of(c).astype(np.int64))
        else:
            pixels, labels = images_of(c)
            # what a program that computes in fp32 reads
            self.x = torch.from_numpy((pixels.astype(np.float32) / np.float32(255)).astype(trial.real))[:, None]
            self.y = torch.from_numpy(labels.astype(np.int64))

    def windows(self, begins):
        T, n = self.c["T"], len(self.z)
        at = torch.tensor(begins)[:, None] + torch.arange(T + 1)[None]
        both = self.z[at % n]
        return both[:, :-1], both[:, 1:]

    def samples(self, first, count):
        if "T" in self.c:
            return self.windows([k * self.c["T"] for k in range(first, first + count)])
        k = range(first, first + count)
        if self.c["images"] != self.c["batch"]:
            k = [shuffled(i, self.c["images"]) for i in k]
        k = [i % self.c["images"] for i in k]
        return self.x[k], self.y[k]

    def held_out(self):
        if "T" not in self.c:
            return self.x[self.c["images"]:], self.y[self.c["images"]:]
        n, T = len(self.z), self.c["T"]
        begin = n - n // 10
        return self.windows([begin + i * T for i in range((n - begin - 1) // T)])
