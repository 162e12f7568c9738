#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's side of `./troupe bench --beside pytorch`: trains troupe's `gpt` (gpt2_in_pytorch.py) in rounds, between which
troupe trains.

--row names the program: "plain", "compiled" and "graphs" are loops in one process; "ddp" is DistributedDataParallel, "1f1b",
"interleaved" and "zb-v" are schedules of torch.distributed.pipelining, each over gloo with a process for each rank. A pipeline
has the blocks of --blocks in its stages, the embeddings in the first, the last norm and the head in the last.

The first line of JSON has versions, the number of parameters, the losses of the first two steps and the seconds of the second,
or says in "failed" why there are no rounds. Then each line of standard input asks for a round of so many steps; the answer is
{"seconds": S}: their mean length. The end of the input ends the program. Exit code 77: there is no PyTorch.
"""
import argparse
import datetime
import json
import os
import re
import signal
import sys
import tempfile
import time

import gpt2_in_pytorch as loops

import torch
from torch import nn

rows = ("plain", "compiled", "graphs", "ddp", "1f1b", "interleaved", "zb-v")
classes = {"1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B", "zb-v": "ScheduleZBVZeroBubble"}
patience = datetime.timedelta(seconds=120)  # with another rank


class Part(nn.Module):
    """Blocks `first` to `last` of a network, with the embeddings before block 0 and the head behind the last block."""

    def __init__(self, network, first, last, o):
        super().__init__()
        parts, self.o = network.transformer, o
        self.blocks = nn.ModuleList(parts["h"][first:last])
        self.begins, self.ends = first == 0, last == len(parts["h"])
        if self.begins:
            self.wte, self.wpe = parts["wte"], parts["wpe"]
        if self.ends:
            self.ln_f, self.lm_head = parts["ln_f"], network.lm_head

    def forward(self, x):
        with loops.autocast(self.o):
            if self.begins:
                x = self.wte(x) + self.wpe.weight[:x.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.lm_head(self.ln_f(x)) if self.ends else x


def schedule_class(row):
    try:
        from torch.distributed import pipelining
    except ImportError:
        pipelining = None
    if not hasattr(pipelining, classes[row]):
        raise NotImplementedError(f"PyTorch {torch.__version__} has no {classes[row]} in torch.distributed.pipelining; "
                                  "2.6 and newer have")
    return getattr(pipelining, classes[row])


def stages_of(row, rank, ranks, count):
    """The stages that a rank has: one, those of a loop, or those of a V."""
    if row == "zb-v":
        return [rank, count - 1 - rank]
    return list(range(rank, count, ranks))


def step_of_pipeline(o, rank):
    from_torch = schedule_class(o.row)
    from torch.distributed.pipelining import PipelineStage
    if o.tied:
        raise NotImplementedError("torch.distributed.pipelining shares no matrix between stages: leave --tied out")
    blocks = [int(count) for count in o.blocks.split(",")]
    ends = [sum(blocks[:i]) for i in range(len(blocks) + 1)]
    network = loops.model_of(o)
    own = stages_of(o.row, rank, o.ranks, len(blocks))
    parts = [Part(network, ends[s], ends[s + 1], o) for s in own]
    stages = [PipelineStage(part, s, len(blocks), torch.device("cpu")) for part, s in zip(parts, own)]
    schedule = from_torch(stages[0] if o.row == "1f1b" else stages, n_microbatches=o.microbatches, loss_fn=loops.cross_entropy)
    optimizer = loops.optimizer_of([p for part in parts for p in part.parameters()], o)
    tokens, labels = (all_of.flatten(0, 1) for all_of in loops.batch_of(o))

    def step():
        losses = []
        inputs = (tokens,) if 0 in own else ()
        wanted = {"target": labels, "losses": losses} if len(blocks) - 1 in own else {}
        schedule.step(*inputs, **wanted)
        optimizer.step()
        optimizer.zero_grad()
        return torch.stack(losses).mean().detach() if losses else None
    return step, sum(loops.parameters_of(part) for part in parts)


def step_of_ddp(o, rank):
    from torch.nn.parallel import DistributedDataParallel
    network = loops.model_of(o)
    model = DistributedDataParallel(network)
    optimizer = loops.optimizer_of(network.parameters(), o)
    tokens, labels = (all_of[rank::o.ranks] for all_of in loops.batch_of(o))
    if o.microbatches % o.ranks:
        raise NotImplementedError(f"{o.microbatches} microbatches are no multiple of {o.ranks} replicas")

    def step():
        total = 0
        for i, (x, y) in enumerate(zip(tokens, labels)):
            model.require_backward_grad_sync = i + 1 == len(tokens)  # as no_sync() does
            with loops.autocast(o):
                loss = model(x, y)
            total = total + loss.detach() / len(tokens)
            (loss / len(tokens)).backward()
        optimizer.step()
        optimizer.zero_grad()
        return total
    return step, loops.parameters_of(network) if rank == 0 else 0


def step_of_row(o, rank):
    """A step, and the parameters that are this rank's to count."""
    if o.row == "ddp":
        return step_of_ddp(o, rank)
    if o.row in classes:
        return step_of_pipeline(o, rank)
    model = loops.model_of(o)
    return loops.step_of_loop("eager" if o.row == "plain" else o.row, model, o), loops.parameters_of(model)


def play(rank, o, asked, answer, meet):
    """Answers with the first losses, then with a time for each number of steps that asked() returns; 0 ends."""
    step, parameters = step_of_row(o, rank)
    def seconds_of(steps):
        meet()
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        loops.wait_for(o.device)
        meet()
        losses.append(None if loss is None else float(loss))
        return (time.perf_counter() - start) / steps
    losses = []
    seconds_of(1)
    answer({"seconds": seconds_of(1), "losses": losses, "parameters": parameters})
    steps = asked()
    while steps > 0:
        answer({"seconds": seconds_of(steps)})
        steps = asked()


def play_rank(rank, o, pipe):
    """One of several processes. Its pipe asks for steps, and ends with its other side."""
    def asked():
        try:
            return pipe.recv()
        except EOFError:
            return 0
    try:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.set_num_threads(max(o.threads // o.ranks, 1))
        from torch import distributed
        distributed.init_process_group("gloo", init_method="file://" + o.meeting, rank=rank, world_size=o.ranks,
                                       timeout=patience)
        play(rank, o, asked, pipe.send, distributed.barrier)
    except Exception as error:  # whatever PyTorch throws
        pipe.send({"failed": loops.first_line(error)})


class Ranks:
    """Processes that play a row together."""

    def __init__(self, o):
        from torch import multiprocessing
        spawned = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(o.ranks):
            near, far = spawned.Pipe()
            process = spawned.Process(target=play_rank, args=(rank, o, far), daemon=True)
            process.start()
            far.close()
            self.pipes.append(near)
            self.processes.append(process)

    def answers(self):
        """An answer of each rank; of the first that fails alone."""
        from multiprocessing import connection
        result, waits = {}, dict(zip(self.pipes, range(len(self.pipes))))
        while waits:
            for pipe in connection.wait(list(waits)):
                rank = waits.pop(pipe)
                try:
                    result[rank] = pipe.recv()
                except EOFError:
                    result[rank] = {"failed": f"the process of rank {rank} has ended"}
                if "failed" in result[rank]:
                    return [result[rank]]
        return list(result.values())

    def ask(self, steps):
        for pipe in self.pipes:
            pipe.send(steps)
        return self.answers()

    def end(self):
        for process in self.processes:
            process.kill()


def blas():
    """The library that multiplies matrices, as PyTorch was built, and as the system gives it."""
    shown = torch.__config__.show()
    found = re.search(r"BLAS_INFO=(\w+)", shown)
    name = found[1] if found else "unknown"
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if re.search(r"/lib(blas|openblas|mkl_rt|mkl_core|blis)[^/]*\.so", line)}
    except OSError:
        paths = set()
    return ", ".join([name, *sorted(os.path.basename(path) for path in paths)])


def about(o):
    return {"row": o.row, "torch": torch.__version__, "python": sys.version.split()[0], "blas": blas(), "threads": o.threads,
            "attention": "scaled_dot_product_attention" if loops.has_fused_attention else "written out"}


def first_of(answers, o):
    """What is said before the first round."""
    failed = [a["failed"] for a in answers if "failed" in a]
    if failed:
        return {**about(o), "failed": failed[0]}
    losses = [a["losses"] for a in answers if a["losses"][0] is not None]  # of ranks that have some
    first, second = (sum(of_step) / len(losses) for of_step in zip(*losses))
    return {**about(o), "parameters": sum(a["parameters"] for a in answers), "loss": first, "later_loss": second,
            "seconds": max(a["seconds"] for a in answers)}


def asked_by_input():
    """Steps of the next round; 0 at the end of the input."""
    return int(sys.stdin.readline() or 0)


def say(line):
    print(json.dumps(line), flush=True)


def play_together(o):
    """Rounds of several processes."""
    ranks = Ranks(o)
    try:
        first = first_of(ranks.answers(), o)
        say(first)
        steps = asked_by_input()
        while "failed" not in first and steps > 0:
            answers = ranks.ask(steps)
            failed = [a for a in answers if "failed" in a]
            if failed:
                return say(failed[0])
            say({"seconds": max(a["seconds"] for a in answers)})
            steps = asked_by_input()
    finally:
        ranks.end()


def play_alone(o):
    """Rounds of this process."""
    torch.set_num_threads(o.threads)
    answered = False

    def answer(line):
        nonlocal answered
        say(line if answered else first_of([line], o))
        answered = True
    try:
        play(0, o, asked_by_input, answer, lambda: None)
    except Exception as error:
        answer({"failed": loops.first_line(error)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    loops.add_options(parser)
    parser.add_argument("--row", choices=rows, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--blocks", default="", help="of each stage, with commas")
    parser.add_argument("--threads", type=int, default=1, help="of all ranks")
    o = parser.parse_args()
    loops.check_options(parser, o)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # other ranks end too
    if o.ranks == 1:
        return play_alone(o)
    with tempfile.TemporaryDirectory() as folder:
        o.meeting = folder + "/meeting"
        play_together(o)


if __name__ == "__main__":
    main()
