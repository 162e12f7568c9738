#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tokens a second that PyTorch trains troupe's `gpt` with: what `./troupe gpu-check` holds its own beside.

The same network (models/layers/gpt.hpp: pre-norm blocks, learned positions, biases, GELU by tanh, no dropout), the same
optimizer over all parameters, cross-entropy, and microbatches whose gradients are summed before an update. In bf16 it is trained as PyTorch
usually does: autocast over fp32 parameters, its fused attention and fused AdamW; once eagerly, once through torch.compile,
and on a GPU once through torch.compile with CUDA graphs, which small microbatches gain most by.
Tokens are drawn at random and are on the device before the clock starts.

A line of JSON each for "eager", "compiled" and "graphs", or those that --only names: a median of steps behind a warm-up, with
the number of parameters; "failed" says in a sentence why one has no number. Exit code 77: nothing can be measured here, and why
stands on stderr.
"""
import argparse
import json
import math
import statistics
import sys
import time

nothing_to_measure = 77
programs = ("eager", "compiled", "graphs")  # graphs on a GPU only


def give_up(why):
    print(f"gpt2_in_pytorch: {why}", file=sys.stderr)
    sys.exit(nothing_to_measure)


try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as why:
    give_up(f"PyTorch cannot be imported: {why}")

has_fused_attention = hasattr(F, "scaled_dot_product_attention")  # from 2.0 on


def attend(q, k, v):
    """Causal, (B, H, T, D) each."""
    if has_fused_attention:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).masked_fill(later, -math.inf).softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):  # (B, T, C)
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        return self.c_proj(attend(q, k, v).transpose(1, 2).reshape(B, T, C))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Parameters have Hugging Face's names, as troupe's; matrices of blocks are stored as PyTorch does, [out, in]."""

    def __init__(self, layers, width, heads, length, words, tied):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(words, width), "wpe": nn.Embedding(length, width),
            "h": nn.ModuleList(Block(width, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, words, bias=False)
        if tied:
            self.lm_head.weight = self.transformer["wte"].weight
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def embed(self, tokens):  # (B, T)
        parts = self.transformer
        return parts["wte"](tokens) + parts["wpe"].weight[:tokens.shape[1]]

    def logits(self, x):  # (B, T, C)
        return self.lm_head(self.transformer["ln_f"](x))

    def forward(self, tokens, labels):  # (B, T) each
        x = self.embed(tokens)
        for block in self.transformer["h"]:
            x = block(x)
        return cross_entropy(self.logits(x), labels)


def cross_entropy(logits, labels):
    """Mean over (B, T), in fp32."""
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def parameters_of(model):
    return sum(p.numel() for p in model.parameters())  # a tied matrix once


def optimizer_of(parameters, o):
    if o.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=o.lr, momentum=o.momentum, weight_decay=o.weight_decay)
    betas = tuple(float(beta) for beta in o.betas.split(","))
    fused = {"fused": True} if o.device.startswith("cuda") else {}
    return torch.optim.AdamW(parameters, lr=o.lr, betas=betas, eps=o.eps, weight_decay=o.weight_decay, **fused)


def batch_of(o):
    """Tokens and labels of a batch, (M, B, T) each: the same in each process of a run."""
    generator = torch.Generator().manual_seed(2)
    shape = (o.microbatches, o.batch // o.microbatches, o.seq)
    return [torch.randint(o.vocab, shape, generator=generator).to(o.device) for _ in range(2)]


def autocast(o):
    return torch.autocast(o.device.split(":")[0], torch.bfloat16, enabled=o.precision == "bf16")


def step_of(model, o, keeps_gradients=False):
    """A function that trains one step, and returns the mean loss of its microbatches, on the device.

    Graphs write each microbatch's gradients to one place, so those must be added to others that stay."""
    optimizer = optimizer_of(model.parameters(), o)
    tokens, labels = batch_of(o)
    if keeps_gradients:
        for p in model.parameters():
            p.grad = torch.zeros_like(p)

    def step():
        total = 0
        for x, y in zip(tokens, labels):
            if keeps_gradients:
                torch.compiler.cudagraph_mark_step_begin()
            with autocast(o):
                loss = model(x, y)
            total = total + loss.detach() / o.microbatches
            (loss / o.microbatches).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=not keeps_gradients)
        return total
    return step


def wait_for(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def seconds_of_steps(step, o):
    """Of each step behind two that warm up: for `--seconds`, but at least 5 and at most 50."""
    taken, until = [], math.inf
    while len(taken) < 7 or (len(taken) < 52 and time.perf_counter() < until):
        start = time.perf_counter()
        step()
        wait_for(o.device)
        taken.append(time.perf_counter() - start)
        if len(taken) == 2:
            until = time.perf_counter() + o.seconds
    return taken[2:]


def model_of(o):
    """The network with the same first values in each process."""
    torch.manual_seed(1)
    return Gpt(o.layers, o.d_model, o.heads, o.seq, o.vocab, o.tied).to(o.device)


def step_of_loop(what, model, o):
    """The plain loop, "eager", "compiled", or compiled with CUDA "graphs"."""
    if what != "eager" and not hasattr(torch, "compile"):
        raise NotImplementedError("this PyTorch has no torch.compile; 2.0 and newer have")
    if what == "eager":
        return step_of(model, o)
    if hasattr(torch, "compiler"):  # from 2.1 on
        torch.compiler.reset()
    if what == "compiled":
        return step_of(torch.compile(model), o)
    return step_of(torch.compile(model, mode="reduce-overhead"), o, keeps_gradients=True)


def first_line(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def measure(what, o):
    """Prints a line; whether it has a number."""
    result = {"what": what, "torch": torch.__version__, "precision": o.precision,
              "attention": "scaled_dot_product_attention" if has_fused_attention else "written out"}
    try:
        model = model_of(o)
        result["parameters"] = parameters_of(model)
        taken = seconds_of_steps(step_of_loop(what, model, o), o)
        result |= {"tokens_per_second": o.batch * o.seq / statistics.median(taken), "steps": len(taken)}
    except Exception as error:  # whatever the compiler throws: what was measured before stands
        result["failed"] = first_line(error)
    print(json.dumps(result), flush=True)
    return "failed" not in result


def add_options(parser):
    """What is trained, and how; troupe's defaults of the optimizer."""
    for name, default in (("layers", 12), ("d-model", 768), ("heads", 12), ("seq", 1024), ("vocab", 50304), ("batch", 16),
                          ("microbatches", 16)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--tied", action="store_true", help="the head's matrix is the embedding's, as GPT-2's")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or cpu")
    parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
    parser.add_argument("--betas", default="0.9,0.999")
    for name, default in (("lr", 1e-3), ("momentum", 0), ("eps", 1e-8), ("weight-decay", 0.01)):
        parser.add_argument("--" + name, type=float, default=default)


def check_options(parser, o):
    for name in ("layers", "d_model", "heads", "seq", "vocab", "batch", "microbatches"):
        if getattr(o, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is at least 1")
    if o.d_model % o.heads:
        parser.error(f"heads share the width: {o.d_model} is no multiple of {o.heads}")
    if o.batch % o.microbatches:
        parser.error(f"microbatches are alike: {o.batch} samples are no multiple of {o.microbatches}")
    if o.device.startswith("cuda"):
        if not torch.cuda.is_available():
            give_up(f"PyTorch {torch.__version__} finds no GPU here")
        if not has_fused_attention:
            give_up(f"PyTorch {torch.__version__} has no fused attention to compare with; 2.0 and newer have")
        torch.set_float32_matmul_precision("high" if o.precision == "bf16" else "highest")


def names_of_programs(text):
    """The value of --only: names in the order in which they are measured."""
    names = text.split(",")
    for name in names:
        if name not in programs:
            raise argparse.ArgumentTypeError(f"there is no '{name}'; there are {', '.join(programs)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--seconds", type=float, default=8, help="to measure each of them for")
    parser.add_argument("--only", type=names_of_programs, help=f"some of {', '.join(programs)}, in the order to measure them")
    o = parser.parse_args()
    check_options(parser, o)
    on_gpu = o.device.startswith("cuda")
    if "graphs" in (o.only or ()) and not on_gpu:
        parser.error("--only graphs needs a GPU: say --device cuda")
    made = [measure(what, o) for what in o.only or (programs if on_gpu else programs[:2])]
    sys.exit(0 if any(made) else 1)


if __name__ == "__main__":
    main()
