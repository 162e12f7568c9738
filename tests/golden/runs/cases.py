# SPDX-License-Identifier: BSD-3-Clause
"""What is trained, and the mistakes that show how far off they would be."""


SGD = dict(kind="sgd", lr=0.1, momentum=0.0, weight_decay=0.0)
ADAMW = dict(kind="adamw", lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)

# A case: a model and its sizes; how it is trained. `variants` are other command lines with the same mathematics:
# options to drop, and options to add.
GPT = dict(model="gpt", layers=2, d=32, heads=4, T=16, V=64, batch=8, M=4, steps=10, stages=2, schedule="1f1b")
MOE = dict(GPT, model="moe", d=16, heads=2, batch=8, M=2, steps=10, experts=4, gate="switch", capacity=1.25, balance=0.01,
           shared=False)
# So few rows that a gate is never near another choice, and rounding to bf16 moves none.
CLEAR = dict(MOE, T=4, batch=4, capacity=8.0, bytes=400)
FLUSH = [
    (["--schedule"], ["--schedule", "naive"]),
    (["--schedule"], ["--schedule", "gpipe"]),
    (["--schedule"], ["--schedule", "chimera"]),
    (["--stages", "--split"], ["--stages", "1"]),
    (["--threads"], ["--threads", "2"]),
    ([], ["--clock", "virtual"]),
]
REPLICAS = [(["--stages", "--schedule"], ["--mesh", "data=2,pipe=2", "--schedule", s, "--exchange", e])
            for s, e in (("1f1b", "naive"), ("1f1b", "tree"), ("1f1b", "ring"), ("gpipe", "halving"), ("1f1b", "server"),
                         ("1f1b", "zero1"), ("gpipe", "zero2"), ("1f1b", "zero3"))]
TENSOR = [(["--stages"], ["--mesh", "pipe=2,tensor=2"]),
          (["--stages"], ["--mesh", "pipe=2,tensor=2", "--sequence-parallel"])]
EXPERTS = [(["--stages"], ["--mesh", "data=2,pipe=2" + m, "--exchange", e])
           for m in ("", ",expert=2") for e in ("naive", "tree", "ring", "halving", "server", "zero1") if not m or e not in ("server", "zero1")]

CASES = {
    "gpt_sgd": dict(GPT, seed=1, optimizer=dict(SGD, lr=0.2, momentum=0.9, weight_decay=0.01), clip=1.0,
                    rate=dict(cosine=True, warmup=20, floor=0.1), variants=FLUSH + REPLICAS + TENSOR),
    "gpt_adamw": dict(GPT, seed=2, optimizer=dict(ADAMW, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), clip=1.3,
                      rate=dict(cosine=True, warmup=24, floor=0.0), variants=FLUSH + REPLICAS + TENSOR),
    "gpt_adamw_plain": dict(GPT, d=16, heads=2, seed=35, defaults=True, optimizer=dict(ADAMW, lr=0.01), variants=FLUSH),
    "gpt_odd": dict(GPT, seed=4, heads=3, d=48, T=20, V=256, batch=6, M=3, steps=8, schedule="gpipe",
                    optimizer=dict(ADAMW, lr=0.003, eps=1e-5, weight_decay=0.2), decay="matrices",
                    rate=dict(cosine=False, warmup=18, floor=0.0), variants=[]),
    "gpt_ragged": dict(GPT, d=16, heads=2, seed=5, batch=7, M=3, steps=9, optimizer=dict(SGD, lr=0.3, momentum=0.5),
                       variants=[(["--schedule"], ["--schedule", "gpipe"])]),
    "pipedream": dict(GPT, layers=4, d=16, heads=2, seed=6, stages=4, schedule="pipedream", clip_stage=True, clip=0.8,
                      optimizer=dict(ADAMW, lr=0.004, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
                      rate=dict(cosine=True, warmup=16, floor=0.1),
                      variants=[([], ["--clock", "virtual"]), (["--stages"], ["--mesh", "pipe=4,tensor=2"])]),
    "pipedream_every3": dict(GPT, layers=3, d=16, heads=2, seed=7, stages=3, schedule="pipedream", update_every=3, batch=7, M=4,
                             steps=8, optimizer=dict(SGD, lr=0.05, momentum=0.9, weight_decay=0.02),
                             rate=dict(cosine=True, warmup=0, floor=0.2), variants=[]),
    "pipedream_sync": dict(GPT, layers=3, d=16, heads=2, seed=8, stages=3, schedule="pipedream", vertical_sync=True, M=4,
                           optimizer=dict(SGD, lr=0.05, momentum=0.5), variants=[]),
    "2bw": dict(GPT, layers=3, d=16, heads=2, seed=9, stages=3, schedule="2bw", M=6, batch=12, clip=1.0,
                optimizer=dict(ADAMW, lr=0.004, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
                rate=dict(cosine=True, warmup=16, floor=0.0), variants=[
                    (["--stages"], ["--mesh", "data=2,pipe=3"]), (["--stages"], ["--mesh", "data=2,pipe=3", "--exchange", "zero1"]),
                    (["--stages"], ["--mesh", "pipe=3,tensor=2"])]),
    "2bw_ragged": dict(GPT, d=16, heads=2, seed=10, schedule="2bw", batch=7, M=3, clip=0.9,
                       optimizer=dict(SGD, lr=0.1, momentum=0.9, weight_decay=0.05), variants=[]),
    "moe_switch": dict(MOE, seed=205, capacity=8.0, optimizer=dict(SGD, lr=0.2, momentum=0.9), balance=0.01, variants=FLUSH + EXPERTS),
    "moe_switch_drops": dict(MOE, seed=12, capacity=1.0, balance=0.05, shared=True, variants=FLUSH[:2] + EXPERTS,
                             optimizer=dict(ADAMW, lr=0.005, eps=1e-4), clip=1.0),
    "moe_gshard": dict(MOE, seed=13, gate="gshard", capacity=8.0, balance=0.0, shared=True, variants=FLUSH[:2],
                       optimizer=dict(SGD, lr=0.2, momentum=0.9)),
    "moe_gshard_drops": dict(MOE, seed=201, gate="gshard", capacity=1.0, balance=0.05, variants=FLUSH[:2] + EXPERTS,
                             optimizer=dict(ADAMW, lr=0.005, eps=1e-4)),
    "moe_defaults": dict(MOE, seed=205, steps=8, defaults=True, optimizer=dict(ADAMW), variants=[]),
    "moe_noise": dict(MOE, seed=203, capacity=1.1, noise=0.5, noise_seed=7, batch=7, M=3, variants=FLUSH[:2],
                      optimizer=dict(SGD, lr=0.2, momentum=0.9)),
    "moe_switch_clear": dict(CLEAR, seed=468, steps=6, optimizer=dict(SGD, lr=0.2, momentum=0.9), variants=FLUSH[:2]),
    "moe_gshard_clear": dict(CLEAR, seed=606, steps=4, gate="gshard", balance=0.05, shared=True,
                             optimizer=dict(SGD, lr=0.2, momentum=0.9), variants=FLUSH[:2]),
    "gpt_servers": dict(GPT, d=16, heads=2, seed=19, optimizer=dict(SGD, lr=0.2), variants=[
        (["--stages", "--lr"], ["--mesh", f"data={n},pipe=2", "--exchange", "server:staleness=0", "--lr", f"{0.2 / n}"]) for n in (2, 4)]),
    "ampnet_one": dict(GPT, d=16, heads=2, seed=18, schedule="ampnet", update_every=3, clip_stage=True, clip=0.5,
                       optimizer=dict(SGD, lr=0.1, momentum=0.9), variants=[([], ["--clock", "virtual"])]),
    "gpt_tied": dict(GPT, seed=21, tied=True, optimizer=dict(ADAMW, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), clip=1.3,
                     rate=dict(cosine=True, warmup=24, floor=0.0), variants=FLUSH + REPLICAS + TENSOR),
    "2bw_tied": dict(GPT, layers=3, d=16, heads=2, seed=22, tied=True, stages=3, schedule="2bw", M=6, batch=12, clip=1.0,
                     optimizer=dict(SGD, lr=0.1, momentum=0.9), variants=[(["--stages"], ["--mesh", "data=2,pipe=3", "--exchange", "zero1"])]),
    "lenet": dict(model="lenet", seed=15, batch=18, images=18, held=6, M=3, steps=10, stages=3, split="2,2,1", schedule="1f1b",
                  optimizer=dict(SGD, lr=0.05, momentum=0.9, weight_decay=0.001), variants=FLUSH[:2] + [
                      (["--steps"], ["--epochs", "10"]), ([], ["--evaluate-every", "3"])]),
    "mlp": dict(model="mlp", layers=3, d=16, seed=16, batch=18, images=18, held=2, pair="t10k", M=4, steps=10, stages=3, schedule="1f1b",
                optimizer=dict(SGD, lr=0.05, momentum=0.9), rate=dict(cosine=True, warmup=36, floor=0.0), variants=FLUSH[:2]),
    "mlp_pipedream": dict(model="mlp", layers=3, d=16, seed=20, batch=10, images=24, held=6, M=5, steps=8, stages=3,
                          schedule="pipedream", optimizer=dict(SGD, lr=0.02, momentum=0.9), variants=[]),
}

MUTANTS = {
    "AdamW's step number stays 1": lambda c: c["optimizer"]["kind"] == "adamw",
    "weight decay dropped": lambda c: c["optimizer"]["weight_decay"] > 0,
    "weight decay coupled (Adam, not AdamW)": lambda c: c["optimizer"]["kind"] == "adamw" and c["optimizer"]["weight_decay"] > 0,
    "decay of all parameters instead of matrices": lambda c: c.get("decay") == "matrices",
    "decay of matrices only": lambda c: c.get("decay", "all") == "all" and c["optimizer"]["weight_decay"] > 0,
    "beta2 passed as beta1": lambda c: c["optimizer"]["kind"] == "adamw",
    "epsilon inside the root": lambda c: c["optimizer"]["kind"] == "adamw" and c["optimizer"]["eps"] >= 1e-6,
    "momentum dropped": lambda c: c["optimizer"].get("momentum", 0) > 0,
    "Nesterov's momentum": lambda c: c["optimizer"].get("momentum", 0) > 0,
    "rate schedule over updates": lambda c: "rate" in c,
    "rate schedule dropped": lambda c: "rate" in c,
    "warm-up begins at 0": lambda c: c.get("rate", {}).get("warmup", 0) > 0,
    "cosine of the samples after an update": lambda c: c.get("rate", {}).get("cosine"),
    "floor dropped": lambda c: c.get("rate", {}).get("floor", 0) > 0,
    "clipping dropped": lambda c: c.get("clip", 0) > 0,
    "clipping by each stage's norm": lambda c: c.get("clip", 0) > 0 and not c.get("clip_stage"),
    "clipping by all stages' norm": lambda c: bool(c.get("clip_stage")),
    "newest weights read": lambda c: c["schedule"] in ("pipedream", "2bw"),
    "mean over microbatches, not samples": lambda c: bool(c["batch"] % c["M"]),
    "loss without 1/T": lambda c: "T" in c,
    "residual missing": lambda c: "T" in c,
    "scale of attention missing": lambda c: "T" in c,
    "exact GELU": lambda c: "T" in c,
    "gate noise ignored": lambda c: c.get("noise", 0) > 0,
    "balance ignored": lambda c: c.get("balance", 0) > 0,
    "balance without n": lambda c: c.get("balance", 0) > 0,
    "balance counts all choices": lambda c: c.get("balance", 0) > 0 and c["gate"] == "gshard",
    "top-2 weights not normalised": lambda c: c.get("gate") == "gshard",
    "output of top-1 not weighted": lambda c: c.get("gate") == "switch",
    "balance counts only what is not dropped": lambda c: c.get("balance", 0) > 0 and c["capacity"] < 2,
    "no capacity": lambda c: c.get("capacity", 9) < 2,
    "capacity rounded down": lambda c: c.get("capacity", 9) < 2,
    "capacity without k": lambda c: c.get("gate") == "gshard" and c["capacity"] <= 1,
    "second choices before first": lambda c: c.get("gate") == "gshard" and c["capacity"] <= 1,
    "shared expert missing": lambda c: c.get("shared"),
}
