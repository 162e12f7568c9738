# SPDX-License-Identifier: BSD-3-Clause
"""The networks, as PyTorch and the papers define them."""
import math

import torch
import torch.nn.functional as F

import trial
from inputs import Stream


def up_down(w, p, x):
    x = F.gelu(x @ w[p + "c_fc.weight"] + w[p + "c_fc.bias"], approximate="none" if trial.mutant == "exact GELU" else "tanh")
    return x @ w[p + "c_proj.weight"] + w[p + "c_proj.bias"]


def moe(c, w, p, x, told, training):
    """Rows x (R, C) to the weighted outputs of their experts; adds the balance loss and expert loads to `told`.

    switch: y = p_i(x) E_i(x), i = argmax p (Fedus et al. 2021, eq. 2); loss N sum f_i P_i (eq. 4 to 6).
    gshard: Lepikhin et al. 2020, algorithm 1: gates of the two best divided by their sum; an expert takes first choices,
    in the order of rows, then second ones; without the random dispatch of second ones. Its balance loss is troupe's: the
    Switch paper's, with f_i of first choices.
    Capacity: factor * R * k / n, rounded up; in an evaluation everything is taken."""
    n, k = c["experts"], c.get("k", 2 if c["gate"] == "gshard" else 1)
    R = x.shape[0]
    logits = x @ w[p + "router.weight"]
    if c.get("noise") and training and trial.mutant != "gate noise ignored":  # of a token of a sample, whatever its microbatch
        stream, begin = Stream(c["noise_seed"], p + "router.noise"), told["first"] * c["T"] * n
        logits = logits + c["noise"] * torch.tensor([stream.normal(begin + i) for i in range(R * n)]).view(R, n)
    p_all = logits.softmax(-1)
    best, chosen = p_all.topk(min(k + 1, n), -1)
    told["margin"] = min(told["margin"], (best[:, :-1] - best[:, 1:]).min().item())
    best, chosen = best[:, :k], chosen[:, :k]
    weight = best / best.sum(-1, keepdim=True) if k > 1 and trial.mutant != "top-2 weights not normalised" else best
    if trial.mutant == "output of top-1 not weighted" and k == 1:
        weight = weight / weight.detach()
    even = R * (1 if trial.mutant == "capacity without k" else k) / n
    room = (math.floor if trial.mutant == "capacity rounded down" else math.ceil)(round(c["capacity"] * even, 9))
    if not training or trial.mutant == "no capacity":
        room = R
    count, dropped, kept = [0] * n, 0, torch.zeros(R, k, dtype=torch.bool)
    for choice in (range(k) if trial.mutant != "second choices before first" else reversed(range(k))):
        for r in range(R):
            e = int(chosen[r, choice])
            if count[e] < room:
                count[e] += 1
                kept[r, choice] = True
            else:
                dropped += 1
    y = torch.zeros_like(x)
    for e in range(n):
        g = (weight * (kept & (chosen == e))).sum(-1)
        rows = (kept & (chosen == e)).any(-1).nonzero()[:, 0]
        if len(rows):
            y = y.index_add(0, rows, g[rows, None] * up_down(w, p + f"experts.{e}.", x[rows]))
    if c["shared"] and trial.mutant != "shared expert missing":
        y = y + up_down(w, p + "shared.", x)
    if trial.mutant == "balance counts only what is not dropped":
        chosen = torch.where(kept, chosen, n)
    f = torch.bincount((chosen if trial.mutant == "balance counts all choices" else chosen[:, 0]).reshape(-1), minlength=n)[:n] / R
    told["balance"] = told["balance"] + (1 if trial.mutant == "balance without n" else n) * (f * p_all.mean(0)).sum()
    told["loads"].append((p.removesuffix(".mlp."), count, dropped))
    return y


def logits_of(c, w, x, told, training):
    if c["model"] == "lenet":
        for i in (1, 2):
            x = F.max_pool2d(F.relu(F.conv2d(x, w[f"conv{i}.weight"], w[f"conv{i}.bias"])), 2)
        x, last = x.flatten(1), 3
    elif c["model"] == "mlp":
        x, last = x.flatten(1), c["layers"]
    if "T" not in c:
        for i in range(1, last + 1):
            x = F.linear(x, w[f"fc{i}.weight"], w[f"fc{i}.bias"])
            x = F.relu(x) if i < last else x
        return x
    B, T = x.shape
    d, H = c["d"], c["heads"]
    mask = torch.ones(T, T, dtype=torch.bool).triu(1)
    h = w["transformer.wte.weight"][x] + w["transformer.wpe.weight"][:T]
    for i in range(c["layers"]):
        p = f"transformer.h.{i}."
        v = F.layer_norm(h, (d,), w[p + "ln_1.weight"], w[p + "ln_1.bias"], 1e-5)
        q, k, u = (v @ w[p + "attn.c_attn.weight"] + w[p + "attn.c_attn.bias"]).view(B, T, 3, H, d // H).permute(2, 0, 3, 1, 4)
        scale = 1 if trial.mutant == "scale of attention missing" else (d // H) ** -0.5
        a = (q @ k.transpose(-2, -1) * scale).masked_fill(mask, -math.inf).softmax(-1) @ u
        h = h + a.transpose(1, 2).reshape(B, T, d) @ w[p + "attn.c_proj.weight"] + w[p + "attn.c_proj.bias"]
        v = F.layer_norm(h, (d,), w[p + "ln_2.weight"], w[p + "ln_2.bias"], 1e-5)
        if c["model"] == "gpt" or i % 2 == 0:
            y = up_down(w, p + "mlp.", v)
        else:
            y = moe(c, w, p + "mlp.", v.reshape(B * T, d), told, training).view(B, T, d)
        h = y if trial.mutant == "residual missing" and i == c["layers"] - 1 else h + y
    h = F.layer_norm(h, (d,), w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], 1e-5)
    return h @ w["transformer.wte.weight" if c.get("tied") else "lm_head.weight"].T


def run(c, w, x, y, first=0, training=True):
    told = {"first": first, "balance": torch.zeros(()), "loads": [], "margin": math.inf}
    z = logits_of(c, w, x, told, training)
    z, y = z.reshape(-1, z.shape[-1]), y.reshape(-1)
    return F.cross_entropy(z, y), (z.argmax(-1) == y).double().mean().item(), told
