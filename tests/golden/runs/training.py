# SPDX-License-Identifier: BSD-3-Clause
"""The plain training of a case: versions, optimizer, rates."""
import math

import numpy as np
import torch

import trial
from inputs import Data, weights_of
from networks import run


def stage_of(c, name):
    """Which stage has a parameter: the embedding goes with the first block, the last norm and the head with the last."""
    units = [int(n) for n in c["split"].split(",")] if "split" in c else [c["layers"] // c["stages"]] * c["stages"]
    if name.startswith("transformer.h."):
        unit = int(name.split(".")[2])
    elif name.startswith("transformer.w"):
        unit = 0
    elif name.startswith(("transformer.ln_f", "lm_head")):
        unit = c["layers"] - 1
    elif name.startswith("conv"):
        unit = int(name[4]) - 1
    else:
        unit = int(name[2]) - 1 + (2 if c["model"] == "lenet" else 0)
    return [s for s, n in enumerate(units) for _ in range(n)][unit]


def factor(rate, first, last, total):
    """Of the learning rate of an update that covers samples [first, last) of a run of `total`: up to 1 while the first
    `warmup` samples come (those of the update counted), then down a half cosine to the floor (those before it counted)."""
    if last <= rate["warmup"]:
        return (first if trial.mutant == "warm-up begins at 0" else last) / rate["warmup"]
    if not rate["cosine"]:
        return 1.0
    floor = 0 if trial.mutant == "floor dropped" else rate["floor"]
    first = last if trial.mutant == "cosine of the samples after an update" else first
    done = max(first - rate["warmup"], 0) / (total - rate["warmup"])
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def optimizer_of(c, p):
    """torch.optim's own; parameters that decay and those that do not are two groups."""
    o = c["optimizer"]
    decay = 0 if trial.mutant == "weight decay dropped" else o["weight_decay"]
    matrices = (c.get("decay", "all") == "matrices") != (trial.mutant in ("decay of all parameters instead of matrices", "decay of matrices only"))
    groups = [{"params": [v for v in p.values() if v.dim() > 1 or not matrices], "weight_decay": decay},
              {"params": [v for v in p.values() if v.dim() <= 1 and matrices], "weight_decay": 0.0}]
    groups = [g for g in groups if g["params"]]
    if o["kind"] == "sgd":
        momentum = 0 if trial.mutant == "momentum dropped" else o["momentum"]
        return torch.optim.SGD(groups, lr=o["lr"], momentum=momentum, nesterov=trial.mutant == "Nesterov's momentum")
    betas = (o["betas"][1], o["betas"][1]) if trial.mutant == "beta2 passed as beta1" else o["betas"]
    kind = torch.optim.Adam if trial.mutant == "weight decay coupled (Adam, not AdamW)" else torch.optim.AdamW
    eps = o["eps"]
    if trial.mutant == "epsilon inside the root":
        eps = math.sqrt(eps)  # as large as it is where gradients are small
    return kind(groups, lr=o["lr"], betas=betas, eps=eps)


def train(c):
    data = Data(c)
    init = {n: torch.from_numpy(v.astype(trial.real)) for n, v in weights_of(c).items()}
    p = {n: v.clone().requires_grad_() for n, v in init.items()}  # the newest version
    optimizer = optimizer_of(c, p)
    S, M, B = c["stages"], c["M"], c["batch"]
    every = c.get("update_every", 1) if c["schedule"] in ("pipedream", "ampnet") else M  # microbatches that an update covers
    sizes = [B // M + (1 if j < B % M else 0) for j in range(M)]  # larger first

    def version(stage, n, update):
        """Which version microbatch n (counted over the run) reads at a stage."""
        if trial.mutant == "newest weights read":
            return update
        if c["schedule"] == "2bw":  # W(t+1) = W(t) - lr g(W(t-1))
            return max(0, n // M - 1)
        if c["schedule"] == "pipedream":  # 1F1B: that many backwards are over when the forward of n begins
            return max(0, n - (S - 1 - (0 if c.get("vertical_sync") else stage))) // every
        return update

    history = [init]
    out = {"loss": [], "loss_samples": [], "gradient_norm": [], "rate": []}
    loads, margin, first, total = [], math.inf, 0, B * c["steps"]
    steps = c["steps"] * M
    for update, begin in enumerate(range(0, steps, every)):
        n_all = range(begin, min(begin + every, steps))
        samples = sum(sizes[n % M] for n in n_all)
        loss, grad, at = 0.0, {n: torch.zeros_like(v) for n, v in init.items()}, first
        for n in n_all:
            m = sizes[n % M]
            w = {k: history[version(stage_of(c, k), n, update)][k].clone().requires_grad_() for k in init}
            x, y = data.samples(at, m)
            ce, _, told = run(c, w, x, y, at)
            share = 1 / len(n_all) if trial.mutant == "mean over microbatches, not samples" else m / samples
            balance = 0 if trial.mutant == "balance ignored" else c.get("balance", 0)
            ((ce * (c["T"] if trial.mutant == "loss without 1/T" else 1) + balance * told["balance"]) * share).backward()
            loss += ce.item() * share
            if c["schedule"] == "ampnet":  # a loss for each microbatch
                out["loss"].append(ce.item())
                out["loss_samples"].append(at + m)
            for k, v in w.items():
                grad[k] += v.grad if v.grad is not None else 0
            loads += [(begin // M, *l) for l in told["loads"]]
            margin = min(margin, told["margin"])
            at += m
        for k, v in p.items():
            v.grad = grad[k]
        by_stage = bool(c.get("clip_stage")) != (trial.mutant in ("clipping by each stage's norm", "clipping by all stages' norm"))
        parts = [[v for k, v in p.items() if stage_of(c, k) == s] for s in range(S)] if by_stage else [list(p.values())]
        limit = c.get("clip", 0) if trial.mutant != "clipping dropped" else 0
        norms = [torch.nn.utils.clip_grad_norm_(part, limit or math.inf).item() for part in parts]
        rate = c["optimizer"]["lr"]
        if "rate" in c and trial.mutant != "rate schedule dropped":
            if trial.mutant == "rate schedule over updates":
                rate *= factor(c["rate"], update, update + 1, total)
            else:
                rate *= factor(c["rate"], first, first + samples, total)
        for g in optimizer.param_groups:
            g["lr"] = rate
        if trial.mutant == "AdamW's step number stays 1":
            for state in optimizer.state.values():
                state["step"].zero_()
        optimizer.step()
        history.append({k: v.detach().clone() for k, v in p.items()})
        first += samples
        if c["schedule"] != "ampnet":
            out["loss"].append(loss)
            out["loss_samples"].append(first)
        out["gradient_norm"].append(norms if by_stage else norms[0])
        out["rate"].append(rate)
    final = history[-1]
    with torch.no_grad():
        ce, right, _ = run(c, final, *data.held_out(), training=False)
    out["evaluation"] = {"loss": ce.item(), "accuracy": right}
    if loads:
        blocks = sorted({b for _, b, _, _ in loads})
        out["experts"] = [{"block": b, "loads": [np.sum([n for t, k, n, _ in loads if (t, k) == (s, b)], 0).tolist() for s in range(c["steps"])],
                           "dropped": [sum(x for t, k, _, x in loads if (t, k) == (s, b)) for s in range(c["steps"])]} for b in blocks]
        out["gate_margin"] = margin
    return out, {n: v.numpy().astype(np.float32) for n, v in final.items()}
