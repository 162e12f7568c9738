# SPDX-License-Identifier: BSD-3-Clause
"""Runs from Python beside the programs. Usage: runs.py PROGRAMS DOCS, with the module on PYTHONPATH."""

import ast
import contextlib
import gc
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy
import troupe

PROGRAMS, DOCS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
SMALL = {"d_model": 16, "heads": 2, "seq": 8, "layers": 4, "vocab": 11, "batch": 8, "microbatches": 4, "steps": 6}


def words(options):
    return ["--" + name.replace("_", "-") + ("" if value is True else f"={value}") for name, value in options.items()]


def program(name, options):
    """The results.json of a program, or its sentence about a mistake."""
    ran = subprocess.run([f"{PROGRAMS}/{name}", "--quiet", "--json=-", *words(options)], capture_output=True, text=True, check=False)
    if ran.returncode == 2:
        return ran.stderr.strip().removeprefix(f"{name}: ").removesuffix(f"; see {name} --help")
    return json.loads(ran.stdout)


def safetensors(path):
    """The tensors of a file, read by the format's definition."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        values = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(values[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items()}


class Dense(troupe.Layer):
    """x w^T + b in NumPy, as linear() has it."""

    def __init__(self, name, inputs, outputs):
        self.inputs, self.outputs, self.operations = inputs, outputs, 2.0 * inputs * outputs
        self.parameters = [(f"{name}.weight", (outputs, inputs), "uniform", inputs ** -0.5),
                           (f"{name}.bias", (outputs,), "uniform", inputs ** -0.5)]
        self.weight, self.bias = (entry[0] for entry in self.parameters)
        self.saved = inputs

    def forward(self, p):
        p.y[:] = p.x @ p.parameters[self.weight].T + p.parameters[self.bias]
        p.saved[:] = p.x

    def input_gradient(self, p):
        if p.dx is not None:
            p.dx[:] = p.dy @ p.parameters[self.weight]

    def weight_gradient(self, p):
        for name, gradient in ((self.weight, p.dy.T @ p.saved), (self.bias, p.dy.sum(axis=0))):
            if p.adds:
                p.gradients[name] += gradient
            else:
                p.gradients[name][...] = gradient


class Presses(Dense):
    """Presses Ctrl-C once, in the first pass."""

    def forward(self, p):
        super().forward(p)
        if not hasattr(self, "pressed"):
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


class Relu(troupe.Layer):
    def __init__(self, size):
        self.inputs = self.outputs = self.saved = size

    def forward(self, p):
        numpy.maximum(p.x, 0, out=p.y)
        p.saved[:] = p.x > 0

    def input_gradient(self, p):
        if p.dx is not None:
            numpy.multiply(p.dy, p.saved, out=p.dx)


def words_of_processes(text):
    """The command lines that have a text."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as words:
            found.append(words.read())
    return [words for words in found if text in words]


class TorchModules(unittest.TestCase):
    """PyTorch's modules beside plain PyTorch."""

    @classmethod
    def setUpClass(cls):
        try:
            import torch
        except ImportError as missing:
            raise unittest.SkipTest("there is no PyTorch here") from missing
        torch.set_num_threads(1)
        cls.torch = torch

    def mlp(self):
        nn = self.torch.nn
        self.torch.manual_seed(1)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3))

    def lenet(self):
        nn = self.torch.nn
        self.torch.manual_seed(2)
        return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)), nn.Conv2d(3, 4, 3), nn.ReLU(),
                             nn.Flatten(), nn.Linear(4 * 2 * 2, 5))

    def gpt(self):
        nn, torch = self.torch.nn, self.torch

        class Embedding(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokens, self.positions = nn.Embedding(11, 8), nn.Embedding(6, 8)

            def forward(self, x):
                return self.tokens(x) + self.positions(torch.arange(x.shape[1]))

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
                self.mlp = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

            def forward(self, x):
                q, k, v = (part.reshape(*x.shape[:2], 2, 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
                scores = (q @ k.transpose(-1, -2) / 2).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e9)
                x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
                return x + self.mlp(x)
        torch.manual_seed(3)
        return nn.Sequential(Embedding(), Block(), Block(), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 11)))

    def samples(self, name):
        random = numpy.random.default_rng(4)
        if name == "gpt":
            tokens = (random.integers(0, 11, (32, 1)) + numpy.arange(7)).astype(numpy.int32) % 11
            return tokens[:, :-1].copy(), tokens[:, 1:].copy()
        shape = (6,) if name == "mlp" else (1, 8, 8)
        return random.normal(size=(32, *shape)).astype(numpy.float32), random.integers(0, 3, 32).astype(numpy.int32)

    def plain(self, module, batches, lag=0):
        """SGD by PyTorch; the gradient of step t is at the parameters of step t - lag. Losses of each step."""
        torch, losses = self.torch, []
        named = dict(module.named_parameters())
        history = [{name: value.detach().clone() for name, value in named.items()}]
        call = getattr(torch, "func", None) and torch.func.functional_call or torch.nn.utils.stateless.functional_call
        for step, (inputs, labels) in enumerate(batches):
            read = {name: value.clone().requires_grad_() for name, value in history[max(0, step - lag)].items()}
            logits = call(module, read, (torch.from_numpy(inputs) if inputs.dtype == numpy.float32 else torch.from_numpy(inputs).long(),))
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), torch.from_numpy(labels).long().reshape(-1))
            gradients = torch.autograd.grad(loss, list(read.values()))
            losses.append(loss.item())
            history.append({name: value - 0.1 * gradient for (name, value), gradient in zip(history[-1].items(), gradients)})
        return losses, history[-1]

    def in_order(self, name, steps, batch):
        inputs, labels = self.samples(name)
        index = [numpy.arange(step * batch, (step + 1) * batch) % 32 for step in range(steps)]
        flat = inputs.reshape(32, -1)
        data = troupe.Data.of_function(lambda i: (flat[i % 32], labels[i % 32]), inputs=flat.shape[1], labels=labels[0].size,
                                       tokens=inputs.dtype == numpy.int32)
        return data, [(inputs[i], labels[i]) for i in index], inputs

    def test_schedules_train_what_plain_pytorch_does(self):
        options = {"batch": 8, "microbatches": 4, "steps": 8, "optimizer": "sgd", "lr": 0.1}
        for name in ("mlp", "lenet", "gpt"):
            module = getattr(self, name)()
            data, batches, inputs = self.in_order(name, 8, 8)
            network = troupe.torch_network(module, example=inputs[:2])
            first = None
            for schedule, lag in (("gpipe", 0), ("1f1b", 0), ("zb-h1", 0), ("2bw", 1)):
                with self.subTest(f"{name} under {schedule}"):
                    run = troupe.train(model=network, data=data, schedule=schedule, stages=2, **options)
                    losses, values = self.plain(module, batches, lag)
                    numpy.testing.assert_allclose(run.losses, losses, rtol=2e-6)
                    self.assertEqual(set(run.parameters), set(values))
                    for parameter, value in values.items():
                        numpy.testing.assert_allclose(run.parameters[parameter], value.numpy(), rtol=1e-4, atol=2e-6)
                    if lag == 0:
                        first = first or run
                        self.assertEqual(run.losses.tolist(), first.losses.tolist())
            proved = troupe.train(model=network, data=data, schedule="pipedream", stages=2, verify=1, **options)
            self.assertEqual(proved.ending, "finished")
            network.load_into(module, proved)
            for parameter, value in module.named_parameters():
                self.assertEqual(value.detach().numpy().tobytes(), proved.parameters[parameter].tobytes())

    def test_ranks_call_one_module_in_turn(self):
        module = self.mlp()
        data, _, inputs = self.in_order("mlp", 8, 8)
        network = troupe.torch_network(module, example=inputs[:2])
        options = {"model": network, "data": data, "batch": 16, "microbatches": 8, "steps": 25, "optimizer": "sgd", "lr": 0.1}
        plain = troupe.train(schedule="gpipe", stages=2, **options)
        for more in ({"schedule": "chimera", "stages": 2}, {"schedule": "1f1b", "mesh": "data=2,pipe=2"}, {"schedule": "1f1b", "stages": 2, "recompute": "stage"},
                     {"schedule": "zb-h1", "stages": 2, "recompute": "blocks=1"}):
            with self.subTest(more):
                run = troupe.train(verify=1, **more, **options)
                numpy.testing.assert_allclose(run.losses, plain.losses, rtol=2e-6)
                for name, values in plain.parameters.items():
                    numpy.testing.assert_allclose(run.parameters[name], values, rtol=1e-4, atol=2e-6)

    def test_backwards_on_newer_weights_are_proved(self):
        for name in ("mlp", "gpt"):
            data, _, inputs = self.in_order(name, 8, 8)
            network = troupe.torch_network(getattr(self, name)(), example=inputs[:2])
            proofs = troupe.verify(model=network, data=data, schedule="ampnet", stages=4, batch=8, microbatches=4, steps=12).proofs
            self.assertEqual(set(proofs[proofs["proof"] == "replay"]["verdict"]), {"holds"})

    def test_a_run_leaves_no_graph(self):
        data, _, inputs = self.in_order("mlp", 8, 8)
        network = troupe.torch_network(self.mlp(), example=inputs[:2])
        troupe.train(model=network, data=troupe.Data(*clusters(), held_out=16), batch=8, microbatches=4, steps=4, stages=2)
        self.assertEqual([len(layer.graphs) + len(layer.gradients) for layer in network._modules], [0] * 5)

    def test_nodes_train_modules(self):
        data, _, inputs = self.in_order("mlp", 8, 8)
        data = troupe.Data(*clusters(), held_out=16)
        networks = [troupe.torch_network(self.mlp(), example=inputs[:2]) for _ in range(3)]
        options = {"data": data, "schedule": "pipedream", "stages": 2, "batch": 8, "microbatches": 4, "steps": 8}
        here = troupe.train(model=networks[0], **options)
        with troupe.Node(model=networks[1], data=data) as one, troupe.Node(model=networks[2], data=data) as two:
            there = troupe.train(model=networks[0], nodes=[one.address, two.address], **options)
        for name, values in here.parameters.items():
            self.assertEqual(there.parameters[name].tobytes(), values.tobytes())

    def test_a_run_is_loaded_into_modules_of_its_shapes_alone(self):
        nn = self.torch.nn
        data, _, inputs = self.in_order("mlp", 8, 8)
        network = troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=inputs[:2])
        run = troupe.train(model=network, data=data, batch=8, microbatches=4, steps=2, stages=1)
        for other in (nn.Sequential(nn.Linear(3, 6)), nn.Sequential(nn.Linear(6, 3, bias=False)), nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 3))):
            with self.assertRaisesRegex(ValueError, "names and shapes"):
                network.load_into(other, run)

    def test_modules_that_compute_other_values_in_a_run_are_refused(self):
        nn, torch = self.torch.nn, self.torch
        inputs = self.samples("mlp")[0][:2]

        class Again(nn.Linear):
            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(lambda x: super(Again, self).forward(x).tanh().square(), x, use_reentrant=False)

        class Listed(nn.Linear):
            def __init__(self):
                super().__init__(6, 6)
                self.all = [self.weight]

            def forward(self, x):
                return super().forward(x) + x @ self.all[0]

        class Saved(nn.Linear):
            def __init__(self):
                super().__init__(6, 6)
                self.transposed = self.weight.detach().t()

            def forward(self, x):
                return super().forward(x) + x @ self.transposed

        class Clamps(nn.Linear):
            def forward(self, x):
                self.weight.data.clamp_(-0.01, 0.01)
                return super().forward(x)

        class Residual(nn.Sequential):
            def forward(self, x):
                return x + super().forward(x)

        class Scaled(nn.CrossEntropyLoss):
            def forward(self, x, labels):
                return 7 * super().forward(x, labels)
        import torch.utils.checkpoint  # noqa: F401
        hooked, top = nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6))
        hooked.weight.register_hook(lambda gradient: gradient * 0.1)
        top.register_forward_hook(lambda module, x, y: y * 5)
        for module, sentence in ((nn.Sequential(nn.Linear(6, 6), Again(6, 6)), "torch.utils.checkpoint"), (nn.Sequential(Listed()), "second path"),
                                 (nn.Sequential(Saved()), "second path"), (nn.Sequential(Clamps(6, 6)), "writes weight"),
                                 (Residual(nn.Linear(6, 6)), "forward or hooks of its own"), (top, "forward or hooks of its own"),
                                 (nn.Sequential(hooked), "has a hook"), (nn.Sequential(nn.LazyLinear(6)), "no shape yet")):
            before = [value.detach().clone() for value in module.parameters() if sentence != "no shape yet"]
            with self.subTest(sentence), warnings.catch_warnings(), self.assertRaisesRegex(ValueError, sentence):
                warnings.simplefilter("ignore")
                troupe.torch_network(module, example=inputs)
            for kept, value in zip(before, module.parameters()):  # but for what the module itself writes
                self.assertTrue(sentence == "writes weight" or torch.equal(kept, value))
        tokens = numpy.array([[1, 2], [3, 4]], numpy.int32)
        with self.assertRaisesRegex(ValueError, "sparse"):
            troupe.torch_network(nn.Sequential(nn.Embedding(5, 3, sparse=True), nn.Flatten(), nn.Linear(6, 2)), example=tokens)
        with self.assertRaisesRegex(ValueError, "with its defaults"):
            troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), Scaled(), example=inputs)
        with torch.no_grad():
            network = troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=inputs)
            self.assertEqual(len(network.layers), 1)
        with torch.inference_mode(), self.assertRaisesRegex(ValueError, "inference mode"):
            troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=inputs)

    def test_a_network_keeps_its_values_and_notes_a_changed_module(self):
        nn = self.torch.nn
        data, _, inputs = self.in_order("mlp", 8, 8)
        module = self.mlp()
        network = troupe.torch_network(module, example=inputs[:2])
        options = {"model": network, "data": data, "batch": 8, "microbatches": 4, "steps": 3, "stages": 1}
        run = troupe.train(**options)
        network.load_into(module, run)
        self.assertEqual(troupe.train(**options).losses.tolist(), run.losses.tolist())
        with self.assertRaisesRegex(ValueError, "init_seed has no effect"):
            troupe.train(init_seed=3, **options)
        module[1] = nn.ReLU()
        with self.assertRaisesRegex(ValueError, "other children"):
            troupe.train(**options)
        module[1] = nn.Tanh()
        module.eval()
        with self.assertRaisesRegex(ValueError, "train"):
            troupe.train(**options)

    def test_checkpoints_of_modules_resume_with_the_same_bits(self):
        data, _, inputs = self.in_order("mlp", 8, 8)
        network = troupe.torch_network(self.mlp(), example=inputs[:2])
        for schedule in ("1f1b", "pipedream", "2bw"):
            options = {"model": network, "data": data, "batch": 8, "microbatches": 4, "stages": 2, "schedule": schedule, "steps": 8}
            with self.subTest(schedule), tempfile.TemporaryDirectory() as folder:
                whole = troupe.train(checkpoint=folder, checkpoint_every=4, **options)
                resumed = troupe.train(resume=f"{folder}/batch-4", **options)
                self.assertEqual(resumed.losses.tolist(), whole.losses.tolist()[-len(resumed.losses):])
                for name, values in whole.parameters.items():
                    self.assertEqual(values.tobytes(), resumed.parameters[name].tobytes())

    def test_modules_that_cannot_be_stages_are_refused(self):
        nn = self.torch.nn
        inputs = self.samples("mlp")[0][:2]
        shared, frozen, torch = nn.Linear(6, 6), nn.Linear(6, 3), self.torch
        frozen.bias.requires_grad = False

        class Of(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.one, self.two, self.function = nn.Linear(6, 6), nn.Linear(6, 6), function
                self.register_buffer("seen", torch.zeros(1))

            def forward(self, x):
                return self.function(self, x)

        def counts(module, x):
            module.seen += 1
            return module.two(module.one(x))
        of, tied = Of, Of(lambda m, x: m.two(m.one(x)))
        tied.two.weight = tied.one.weight
        for module, sentence in ((nn.Linear(6, 3), "Sequential"), (nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5)), "Dropout"),
                                 (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), "BatchNorm1d"),
                                 (nn.Sequential(shared, shared), "shares"), (nn.Sequential(nn.Linear(5, 3)), "example"),
                                 (nn.Sequential(nn.Linear(6, 3).double()), "float32"), (nn.Sequential(frozen), "frozen"),
                                 (nn.Sequential(of(lambda m, x: m.one(x))), "does not use parameter 0.two.weight"),
                                 (nn.Sequential(of(lambda m, x: m.one(x) + m.two(x) + torch.rand(1))), "random"),
                                 (nn.Sequential(of(counts)), "writes seen"), (nn.Sequential(of(lambda m, x: m.one(x.zero_()) + m.two(x))), "its input"),
                                 (nn.Sequential(nn.Linear(6, 6), of(lambda m, x: m.one(x.detach()) + m.two(x.detach()))), "does not use its input"),
                                 (nn.Sequential(of(lambda m, x: (m.one(x), m.two(x)))), "gives tuple"), (nn.Sequential(tied), "two places")):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                troupe.torch_network(module, example=inputs)
        for example, sentence in ((numpy.full((2, 6), numpy.nan, numpy.float32), "not finite"), (numpy.zeros((2, 6), numpy.uint16), "example is uint16")):
            with self.assertRaisesRegex(ValueError, sentence):
                troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=example)
        for example in (inputs.astype(">f4"), inputs[::-1], inputs[:, ::1].T.copy().T):
            self.assertEqual(len(troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=example).layers), 1)
        twice = nn.Sequential(of(lambda m, x: m.two(m.one(m.one(x)))))
        self.assertEqual(len(troupe.torch_network(twice, example=inputs).layers), 1)
        for example, error in (([1.0], TypeError), (inputs.astype(float), ValueError), (inputs[:0], ValueError)):
            with self.subTest(str(example)), self.assertRaisesRegex(error, "example is"):
                troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), example=example)
        with self.assertRaisesRegex(ValueError, "CrossEntropyLoss"):
            troupe.torch_network(nn.Sequential(nn.Linear(6, 3)), nn.MSELoss(), example=inputs)


def clusters(samples=64, inputs=6, classes=3):
    random = numpy.random.default_rng(1)
    labels = random.integers(0, classes, samples).astype(numpy.int32)
    centres = random.normal(size=(classes, inputs))
    return (centres[labels] + 0.3 * random.normal(size=(samples, inputs))).astype(numpy.float32), labels


OWN = {"batch": 8, "microbatches": 4, "steps": 30, "optimizer": "sgd", "lr": 0.1}


class Runs(unittest.TestCase):
    def test_a_run_has_the_numbers_of_the_program(self):
        options = {**SMALL, "schedule": "1f1b", "stages": 2}
        run, printed = troupe.train(**options), program("train", options)["runs"][0]
        self.assertEqual(run.losses.tolist(), printed["loss"])
        self.assertEqual(run.loss_samples.tolist(), printed["loss_samples"])
        self.assertEqual(run.gradient_norms.tolist(), printed["gradient_norms"])
        self.assertEqual(run.learning_rates.tolist(), printed["learning_rates"])
        self.assertEqual(run.versions.tolist(), printed["weight_versions"])
        self.assertEqual(run.memory["rank"].tolist(), [0, 1])
        self.assertTrue((run.memory["peak"] <= sum(run.memory[use] for use in run.memory.dtype.names[2:])).all())

    def test_virtual_time_gives_the_same_results(self):
        options = {"schedules": "gpipe,1f1b,2bw", "stages": 4, "microbatches": 8, "steps": 2, "cost": "F=1,B=2"}
        result, printed = troupe.simulate(**options), program("simulate", options)
        self.assertEqual(result.results["runs"], printed["runs"])
        self.assertEqual([run.schedule for run in result], ["gpipe", "1f1b", "2bw"])
        for run, numbers in zip(result, printed["runs"]):
            rows = run.timeline
            self.assertEqual(rows["end"].max(), numbers["makespan"])
            forwards = rows[(rows["kind"] == "F") & (rows["rank"] == 3)]
            self.assertEqual(len(forwards), 16)
            self.assertAlmostEqual((forwards["end"] - forwards["start"]).sum(), 0.016)
            self.assertEqual(set(rows["kind"]), {"F", "B", "U"} if (rows["kind"] == "U").any() else {"F", "B"})
        self.assertEqual(result["2bw"].staleness["staleness_max"].tolist(), printed["runs"][2]["staleness"]["max"])

    def test_parameters_are_the_saved_ones_without_a_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weights.safetensors"
            result = troupe.train(**SMALL, stages=2, save=path)
            saved = safetensors(path)
        once, again = result.parameters, result.parameters
        self.assertEqual(set(once), set(saved))
        for name, values in saved.items():
            self.assertEqual(once[name].tobytes(), values.tobytes())
            self.assertEqual(once[name].shape, values.shape)
            self.assertEqual(once[name].__array_interface__["data"], again[name].__array_interface__["data"])
            with self.assertRaises(ValueError):
                once[name][...] = 0
        del result, again
        gc.collect()
        for name, values in saved.items(): # arrays keep what they show
            self.assertEqual(once[name].tobytes(), values.tobytes())

    def test_a_wrong_option_has_the_sentence_of_the_program(self):
        for options in ({"schedule": "no"}, {"stages": 0}, {"foo": 1}, {"model": "mlp", "heads": 3}, {"steps": "many"},
                        {"mesh": "pipe=2", "stages": 2}, {"resume": "/nowhere"}, {"data": "text:/nowhere"}, {"stages": 5, "layers": 1}):
            with self.subTest(options), self.assertRaises(ValueError) as wrong:
                troupe.train(**options)
            self.assertEqual(str(wrong.exception), program("train", options))

    def test_lists_flags_and_absent_values(self):
        with_list = troupe.simulate(schedules=["gpipe", "1f1b"], stages=2, print=None)
        self.assertEqual(len(with_list), 2)
        self.assertEqual(troupe.train(**SMALL, stages=1, tied=True).ending, "finished")
        self.assertIn("stages", troupe.options("train"))
        with self.assertRaisesRegex(ValueError, "command line"):
            troupe.train(help=True)
        self.assertEqual(troupe.train(**{**SMALL, "steps": numpy.int64(2), "lr": numpy.float32(0.1)}, tied=numpy.bool_(True)).ending, "finished")
        for options, error, sentence in (({"schedules": []}, ValueError, "schedules has an empty value"),
                                         ({"schedules": ["gpipe", ""]}, ValueError, "empty value"),
                                         ({"schedule": b"gpipe"}, TypeError, "a bytes is no value"),
                                         ({"schedule": {"gpipe": 1}}, TypeError, "a dict is no value"),
                                         ({"stages": [True, 2]}, TypeError, "bool stands alone"),
                                         ({"stages": 2 + 1j}, TypeError, "a complex is no value")):
            with self.subTest(options), self.assertRaisesRegex(error, sentence):
                troupe.simulate(**options)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "order.csv"
            troupe.simulate(schedule="gpipe", stages=2, export=path)
            self.assertTrue(path.exists())
        with self.assertRaisesRegex(AttributeError, "the result has 2"):
            _ = with_list.losses
        with self.assertRaisesRegex(KeyError, "the runs are gpipe, 1f1b"):
            _ = with_list["zb-v"]

    def test_help_and_completion_know_the_options(self):
        for function in (troupe.train, troupe.compare, troupe.simulate, troupe.verify, troupe.evaluate, troupe.memory):
            text, keywords = inspect.getdoc(function), inspect.signature(function).parameters
            for name, told in troupe.options(function.__name__).items():
                self.assertIn(name, keywords)
                self.assertIn(f"{name}: {told.splitlines()[0]}", text)
        self.assertIn("schedule", inspect.signature(troupe.compare).parameters) # another name of schedules
        self.assertIn("progress", inspect.signature(troupe.train).parameters)
        self.assertNotIn("progress", inspect.signature(troupe.simulate).parameters)

    def test_a_run_that_fails_gives_what_was_done(self):
        with self.assertRaises(troupe.RunError) as failed:
            troupe.train(**SMALL, stages=2, optimizer="sgd", lr=1e30)
        self.assertIn("not finite", str(failed.exception))
        self.assertEqual(failed.exception.result.ending, "failed")
        self.assertTrue(len(failed.exception.result.losses) > 0)

    def test_ctrl_c_ends_a_run_and_no_other(self):
        before = signal.getsignal(signal.SIGINT)
        pressed = threading.Event()

        def press(samples, loss):
            if not pressed.is_set():
                pressed.set()
                os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(troupe.Interrupted) as ended:
            troupe.train(progress=press, **{**SMALL, "steps": 1_000_000}, stages=2)
        self.assertIsInstance(ended.exception, KeyboardInterrupt)
        self.assertEqual(ended.exception.result.ending, "interrupted")
        self.assertTrue(len(ended.exception.result.losses) > 0)
        self.assertEqual(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(troupe.train(**SMALL, stages=2).ending, "finished")

    def test_ctrl_c_during_a_slow_call_of_python(self):
        told = []

        def slow(samples, loss):
            told.append(samples)
            if len(told) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)
        with self.assertRaises(troupe.Interrupted):
            troupe.train(progress=slow, **{**SMALL, "steps": 1_000_000}, stages=1)
        self.assertLess(len(told), 100)  # and not the losses that waited
        with self.assertRaises(KeyboardInterrupt):
            troupe.check_layer(Presses("one", 5, 3), samples=2)

        class Stalls(Dense):
            def forward(self, p):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(3)
        with self.assertRaises(KeyboardInterrupt):
            troupe.train(model=troupe.Network([Stalls("one", 6, 3)]), data=troupe.Data(*clusters()), stages=1, stall_timeout=1, **OWN)
        time.sleep(3)

    def test_a_stalled_pass_loses_no_file_at_the_interpreters_end(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"""if True:
                import atexit
                atexit.register(lambda: print("handler"))
                import sys, time, numpy, troupe
                file = open({folder!r} + "/notes", "w")
                class Stalls(troupe.Layer):
                    inputs, outputs, operations = 2, 2, 1.0
                    def forward(self, p):
                        time.sleep(60)
                file.write("before ")
                try:
                    troupe.train(model=troupe.Network([Stalls()]), data=troupe.Data(numpy.zeros((4, 2), "f4"), numpy.zeros(4, "i4")), batch=4,
                                 microbatches=1, steps=1, stages=1, stall_timeout=1)
                except troupe.RunError as error:
                    file.write(str("stalled" in str(error)))
                sys.exit(5)
                """
            ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((ran.returncode, ran.stdout), (5, "handler\n"), ran.stderr)
            with open(f"{folder}/notes", encoding="utf-8") as file:
                self.assertEqual(file.read(), "before True")

    def test_ctrl_c_ends_a_proof_that_then_has_not_failed(self):
        own = {"model": troupe.Network([Presses("one", 6, 3)]), "data": troupe.Data(*clusters()), "stages": 1}
        with self.assertRaises(troupe.Interrupted) as ended:
            troupe.verify(**own, **{**OWN, "steps": 1_000_000})
        result = ended.exception.result
        self.assertEqual(result.table, "1 runs, 0 that fail\n")
        self.assertTrue(result.results["runs"][0]["sentence"].endswith("interrupted"))

    def test_progress_is_told_and_its_exception_ends_the_run(self):
        told = []
        result = troupe.train(progress=lambda samples, loss: told.append((samples, loss)), **SMALL, stages=2)
        self.assertEqual(told, list(zip(result.loss_samples.tolist(), result.losses.tolist())))

        def stop(samples, loss):
            raise LookupError("enough")
        with self.assertRaisesRegex(LookupError, "enough"):
            troupe.train(progress=stop, **{**SMALL, "steps": 1_000_000}, stages=2)

    def test_one_run_at_a_time(self):
        def again(samples, loss):
            troupe.simulate(stages=2)
        with self.assertRaisesRegex(RuntimeError, "another run"):
            troupe.train(progress=again, **SMALL, stages=2)
        self.assertEqual(troupe.simulate(schedule="1f1b", stages=2).ending, "finished")

    def test_a_report_and_a_notebook_show_the_page(self):
        result = troupe.simulate(schedule="1f1b", stages=2)
        with tempfile.TemporaryDirectory() as folder:
            result.report(f"{folder}/page.html")
            with open(f"{folder}/page.html", encoding="utf-8") as page:
                text = page.read()
        self.assertIn('<script type="application/json"', text)
        self.assertNotIn("@page_data@", text)
        self.assertIn("srcdoc=", result._repr_html_())

    def test_notes_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tempfile.TemporaryDirectory() as folder:
                troupe.simulate(schedule="2bw", stages=2, export=f"{folder}/order.csv", quiet=False)
        self.assertTrue(any("is not for PyTorch" in str(one.message) for one in caught))

    def test_a_schedule_of_a_function_is_the_catalogs(self):
        stages, microbatches = 4, 8

        def gpipe(rank):
            yield from ((rank, "F", m) for m in range(microbatches))
            yield from (f"{rank}B{m}" for m in range(microbatches))

        def slot_of_1f1b(operation, stage, k):
            return stage + 2 * k if operation == "F" and k < stages - stage else \
                2 * k + stage if operation == "F" else 2 * stages - 1 - stage + 2 * k
        own = [troupe.Schedule("waves", gpipe, stages=stages),
               troupe.Schedule.by_slots("pairs", slot_of_1f1b, stages=stages, microbatches=microbatches)]
        options = {"stages": stages, "microbatches": microbatches, "steps": 3, "cost": "F=1,B=2"}
        result = troupe.simulate(schedules=[*own, "gpipe", "1f1b"], **options)
        for mine, theirs in (("waves", "gpipe"), (own[1], "1f1b")):
            for name in ("rank", "kind", "stage", "microbatch", "start", "end"):
                self.assertEqual(result[mine].timeline[name].tolist(), result[theirs].timeline[name].tolist())
        trained = troupe.compare(schedules=[*own, "gpipe"], **{**SMALL, "microbatches": 8}, stages=4)
        for run in trained.runs[:2]:
            self.assertEqual(run.losses.tolist(), trained["gpipe"].losses.tolist())

    def test_a_text_with_stashed_weights_is_pipedream(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/order.csv"
            theirs = troupe.simulate(schedule="pipedream", stages=2, steps=2, export=path)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        mine = troupe.simulate(schedule=troupe.Schedule("mine", text))
        self.assertEqual(mine.timeline["start"].tolist(), theirs.timeline["start"].tolist())
        self.assertEqual(mine.staleness.tolist(), theirs.staleness.tolist())

    def test_a_wrong_schedule_is_refused_in_a_sentence(self):
        wrong = troupe.Schedule("early", lambda rank: ["0B0", "0F0"], stages=1)
        with self.assertRaisesRegex(ValueError, "B0 of stage 0 comes before its forward"):
            troupe.simulate(schedule=wrong)
        with self.assertRaisesRegex(ValueError, "0X0"):
            troupe.simulate(schedule=troupe.Schedule("odd", "0X0\n"))
        other = troupe.Schedule("early", "0F0,0B0\n")
        with self.assertRaisesRegex(ValueError, "two schedules have the name early"):
            troupe.simulate(schedules=[wrong, other])
        for name in ("", "a,b", "a:b"):
            with self.assertRaisesRegex(ValueError, "no name of a schedule"):
                troupe.Schedule(name, "0F0,0B0")
        for action in (("F", 0, 0), (0, "f", 0), (0, "F"), 5):
            with self.subTest(action), self.assertRaisesRegex(ValueError, "is no action"):
                troupe.Schedule("mine", lambda rank: [action], stages=1)
        with self.assertRaisesRegex(ValueError, "--verify needs a value$"):
            troupe.train(verify=True, stages=1)
        with self.assertRaisesRegex(ValueError, "needs stages="):
            troupe.Schedule("mine", lambda rank: [])

    def test_layers_in_numpy_train_what_builtin_ones_do(self):
        data = troupe.Data(*clusters(), held_out=16)
        own = troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)])
        builtin = troupe.Network([troupe.linear("one", 6, 8, rectified=True), troupe.linear("two", 8, 3)])
        for schedule, stages in (("gpipe", 1), ("1f1b", 2), ("zb-h1", 2), ("pipedream", 2), ("2bw", 2)):
            with self.subTest(schedule):
                mine = troupe.train(model=own, data=data, schedule=schedule, stages=stages, **OWN)
                theirs = troupe.train(model=builtin, data=data, schedule=schedule, stages=stages, **OWN)
                numpy.testing.assert_allclose(mine.losses, theirs.losses, rtol=1e-5)
                self.assertEqual(set(mine.parameters), {"one.weight", "one.bias", "two.weight", "two.bias"})
                self.assertLess(mine.losses[-1], 0.5 * mine.losses[0])
                self.assertLess(mine.numbers["evaluation"]["loss"], 0.7)
        flushes = troupe.compare(schedules=["gpipe", "1f1b", "zb-h1"], model=own, data=data, stages=2, verify=1, **OWN)
        for run in flushes:
            self.assertEqual(run.losses.tolist(), flushes["gpipe"].losses.tolist())

    def test_a_layer_that_saves_nothing_reads_the_same_input_in_all_passes(self):
        class Lean(Dense):
            def __init__(self, *sizes):
                super().__init__(*sizes)
                self.saved, self.seen = 0, {}

            def forward(self, p):
                p.y[:] = p.x @ p.parameters[self.weight].T + p.parameters[self.bias]

            def weight_gradient(self, p):
                for name, gradient in ((self.weight, p.dy.T @ p.x), (self.bias, p.dy.sum(axis=0))):
                    p.gradients[name][...] = gradient + p.gradients[name] if p.adds else gradient
        troupe.check_layer(Lean("one", 5, 3))
        data = troupe.Data(*clusters(), held_out=16)
        saving, lean = (troupe.Network([of("one", 6, 8), Relu(8), of("two", 8, 7), of("three", 7, 3)]) for of in (Dense, Lean))
        for more in ({"schedule": "zb-h1", "stages": 2}, {"schedule": "pipedream", "stages": 4}, {"schedule": "1f1b", "stages": 2, "recompute": "stage"},
                     {"schedule": "zb-h1", "stages": 2, "recompute": "blocks=1"}, {"schedule": "chimera", "stages": 2}, {"schedule": "ampnet", "stages": 1}):
            with self.subTest(more):
                runs = [troupe.train(model=network, data=data, verify=1, **more, **OWN) for network in (saving, lean)]
                self.assertEqual(runs[0].losses.tolist(), runs[1].losses.tolist())

    def test_a_numpy_network_is_a_plain_loop(self):
        inputs, labels = clusters(samples=8)
        own = troupe.Network([Dense("one", 6, 3)])
        options = {**OWN, "steps": 1, "schedule": "1f1b", "stages": 1}
        start = troupe.train(model=own, data=troupe.Data(inputs, labels), **{**options, "lr": 1e-30})
        run = troupe.train(model=own, data=troupe.Data(inputs, labels), **options)
        weight, bias = (start.parameters[f"one.{name}"].astype(float) for name in ("weight", "bias"))
        logits = inputs @ weight.T + bias
        share = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        self.assertAlmostEqual(run.losses[0], -numpy.log(share[numpy.arange(8), labels]).mean(), places=5)
        share[numpy.arange(8), labels] -= 1
        numpy.testing.assert_allclose(run.parameters["one.weight"], weight - 0.1 * share.T @ inputs / 8, atol=1e-6)
        numpy.testing.assert_allclose(run.parameters["one.bias"], bias - 0.1 * share.mean(axis=0), atol=1e-6)

    def test_data_of_a_function_are_those_of_arrays(self):
        inputs, labels = clusters()
        taken = []

        def sample(index):
            taken.append(index)
            return inputs[index % 48 if index >= 0 else 47 - index], labels[index % 48 if index >= 0 else 47 - index]
        network = troupe.Network([troupe.linear("one", 6, 3)])
        run = troupe.train(model=network, data=troupe.Data.of_function(sample, inputs=6, held_out=16), stages=1, **OWN)
        self.assertEqual(set(range(240)) - set(taken), set())
        self.assertEqual(set(index for index in taken if index < 0), set(range(-16, 0)))
        self.assertLess(run.losses[-1], 0.5 * run.losses[0])

    def test_tokens_of_arrays_train_a_builtin_model(self):
        tokens = (numpy.arange(32)[:, None] + numpy.arange(9)[None, :]).astype(numpy.int32) % 11
        data = troupe.Data(tokens[:, :-1].copy(), tokens[:, 1:].copy(), held_out=4)
        run = troupe.train(data=data, stages=2, **{**SMALL, "steps": 60, "lr": 0.01})
        self.assertLess(run.losses[-1], 0.5 * run.losses[0])

    def test_mistakes_in_layers_and_data_have_sentences(self):
        inputs, labels = clusters()
        network = troupe.Network([troupe.linear("one", 6, 3)])
        for data, sentence in (((inputs.astype(float), labels), "int32 .* or of float32"),
                               ((inputs, labels.astype(float)), "labels are arrays of int32"),
                               ((inputs[1:], labels), "a row for each sample")):
            with self.assertRaisesRegex(ValueError, sentence):
                troupe.Data(*data)
        with self.assertRaisesRegex(ValueError, "held_out is 64 of 64"):
            troupe.Data(inputs, labels, held_out=64)
        with self.assertRaisesRegex(TypeError, "masked"):
            troupe.Data(numpy.ma.masked_array(inputs), labels)
        for call, error, sentence in ((lambda: troupe.Data(inputs, labels, held_out=1.5), TypeError, "held_out is 1.5"),
                                      (lambda: troupe.Data(inputs, labels, seed=-1), ValueError, "seed is -1"),
                                      (lambda: troupe.linear("one", 0, 3), ValueError, "inputs is 0"),
                                      (lambda: troupe.linear("one", 2**70, 3), ValueError, "is allowed"),
                                      (lambda: troupe.Network([], predictions=0), ValueError, "predictions is 0"),
                                      (lambda: troupe.check_layer(Dense("one", 5, 3), samples=0), ValueError, "samples is 0"),
                                      (lambda: troupe.check_layer(Dense("one", 5, 3), tolerance=0), ValueError, "tolerance is 0"),
                                      (lambda: troupe.Data.of_function(lambda i: None, inputs=0), ValueError, "inputs is 0"),
                                      (lambda: troupe.Schedule("mine", lambda rank: [], stages=0), ValueError, "stages is 0")):
            with self.subTest(sentence), self.assertRaisesRegex(error, sentence):
                call()
        for call, error, sentence in ((lambda: troupe.linear(5, 1, 1), TypeError, "name is 5"), (lambda: troupe.Network([5]), TypeError, "of type int"),
                                      (lambda: troupe.check_layer(troupe.linear("a", 2, 2)), TypeError, "a subclass of Layer is needed"),
                                      (lambda: troupe.Data.of_function(5, inputs=4), TypeError, "a function of an index"),
                                      (lambda: troupe.Schedule(5, "0F0"), ValueError, "no name"), (lambda: troupe.options("bogus"), ValueError, "no program"),
                                      (lambda: troupe.simulate(schedules="gpipe\0x"), ValueError, "NUL"),
                                      (lambda: troupe.Network([troupe.linear("h", 4, 2)], values={"h.weight": numpy.zeros((4, 2))}), ValueError, "shape"),
                                      (lambda: troupe.Network([troupe.linear("h", 4, 2)], values={"h.weight": numpy.zeros((2, 4), complex)}), TypeError, "complex"),
                                      (lambda: troupe.Network([troupe.linear("h", 4, 2)], values={"no": 1}), ValueError, "no parameter 'no'"),
                                      (lambda: troupe.train(model=network, data=troupe.Data(inputs, labels), data_seed=7), ValueError, "data_seed has no effect"),
                                      (lambda: troupe.train(data=troupe.Data(inputs, labels), evaluate_data="synthetic"), ValueError, "evaluate_data has no")):
            with self.subTest(sentence), self.assertRaisesRegex(error, sentence):
                call()

        class Real(Dense):
            def __init__(self):
                super().__init__("one", 4, 2)
                self.inputs = 4.0
        with self.assertRaisesRegex(ValueError, "member inputs of a layer is 4.0"):
            troupe.Network([Real()])
        self.assertIn("vary", troupe.options("study"))
        self.assertEqual(str(pickle.loads(pickle.dumps(troupe.RunError("why", None)))), "why")
        for sample, sentence in (((inputs[0], 1.5), "labels of float64"), ((inputs[0], "no"), "whole numbers"),
                                 ((inputs[0].astype(complex), 1), "inputs of complex128"), ((inputs[0][1:], 1), "5 inputs, and 6"),
                                 ((inputs[0], 2**40), "int32 does not hold"),
                                 ((inputs[0], numpy.uint64(2**64 - 1)), "int32 does not hold"), (None, "sample 0: .*sequence"), ((inputs[0],), "pair"), ((inputs[0], None), "labels of object")):
            with self.subTest(sentence), self.assertRaisesRegex((ValueError, troupe.RunError), sentence):
                troupe.train(model=network, data=troupe.Data.of_function(lambda i: sample, inputs=6), stages=1, **OWN)
        run = troupe.train(model=network, data=troupe.Data.of_function(lambda i: (inputs[i % 64].tolist(), bool(labels[i % 64])), inputs=6), stages=1, **OWN)
        self.assertEqual(run.ending, "finished")
        for options, sentence in (({"data": troupe.Data(inputs[:, 1:].copy(), labels)}, "6"),
                                  ({"data": troupe.Data(inputs, labels), "heads": 2}, "heads is of built-in models"),
                                  ({"data": troupe.Data(inputs, labels), "precision": "bf16"}, "bf16"),
                                  ({"data": troupe.Data(inputs, labels), "mesh": "pipe=1,tensor=2"}, "tensor=")):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                troupe.train(model=network, **{**OWN, **options})
        with self.assertRaisesRegex(ValueError, "at most 1 stages, not into 2: say --stages 1"):
            troupe.train(model=network, data=troupe.Data(inputs, labels), stages=2, **OWN)
        with self.assertRaisesRegex(ValueError, "layer 1 takes 5"):
            troupe.train(model=troupe.Network([troupe.linear("one", 6, 3), troupe.linear("two", 5, 3)]), data=troupe.Data(inputs, labels), **OWN)

    def test_checkpoints_of_a_network_resume_with_the_same_bits(self):
        network, data = troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)]), troupe.Data(*clusters())
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other_folder:
            whole = troupe.train(model=network, data=data, schedule="1f1b", stages=2, checkpoint=other_folder, checkpoint_every=10, **OWN)
            kept = {"checkpoint": folder, "checkpoint_every": 10, "schedule": "1f1b", "stages": 2}
            troupe.train(model=network, data=data, **kept, **{**OWN, "steps": 20})
            resumed = troupe.train(model=network, data=data, resume=folder, **kept, **OWN)
            with open(sorted(os.scandir(folder), key=lambda entry: entry.name)[-1].path + "/manifest.json", encoding="utf-8") as file:
                recorded = json.load(file)["training"]["options"]
            inputs, labels = clusters()
            with self.assertRaisesRegex(ValueError, "data"):
                troupe.train(model=network, data=troupe.Data(inputs + 1, labels), resume=folder, **kept, **{**OWN, "steps": 60})
            other = troupe.Network([troupe.linear("one", 6, 3)])
            with self.assertRaisesRegex(ValueError, "a network of 3 layers, not 1"):
                troupe.train(model=other, data=data, resume=folder, **OWN, stages=1)
        for name, values in whole.parameters.items():
            self.assertEqual(values.tobytes(), resumed.parameters[name].tobytes())
        self.assertEqual(resumed.losses.tolist(), whole.losses.tolist()[20:])
        for option in ("--model", "--layers", "--d-model", "--data"): # of built-in parts
            self.assertNotIn(option, recorded)

    def test_an_exception_of_a_pass_ends_the_run_with_its_lines(self):
        class Broken(Dense):
            def forward(self, p):
                raise LookupError("no such weight")
        with self.assertRaises(troupe.RunError) as failed:
            troupe.train(model=troupe.Network([Broken("one", 6, 3)]), data=troupe.Data(*clusters()), stages=1, **OWN)
        self.assertRegex(str(failed.exception), r"(?s)Broken\.forward: LookupError: no such weight.*runs\.py\(\d+\): forward")
        ended = troupe.train(model=troupe.Network([Dense("one", 6, 3)]), data=troupe.Data(*clusters()), stages=1, **OWN)
        self.assertEqual(ended.ending, "finished")

    def test_wrong_layers_are_refused_by_the_check(self):
        troupe.check_layer(Dense("one", 5, 3))
        troupe.check_layer(Relu(4))

        class Twice(Dense):
            def input_gradient(self, p):
                super().input_gradient(p)
                if p.dx is not None:
                    p.dx *= 2

        class Overwrites(Dense):
            def weight_gradient(self, p):
                p.gradients[self.weight][:] = p.dy.T @ p.saved
                p.gradients[self.bias][:] = p.dy.sum(axis=0)

        class Keeps(Dense):
            def forward(self, p):
                super().forward(p)
                self.last = p.x.copy()

            def weight_gradient(self, p):
                p.saved[:] = self.last
                super().weight_gradient(p)
        for wrong, sentence in ((Twice, "dx"), (Overwrites, "add"), (Keeps, "")):
            with self.subTest(wrong.__name__), self.assertRaisesRegex(ValueError, sentence):
                troupe.check_layer(wrong("one", 5, 3))

    def test_passes_that_replace_arrays_are_refused(self):
        class Replaces(Dense):
            def forward(self, p):
                p.y = p.x @ p.parameters[self.weight].T

        class ReplacesGradients(Dense):
            def weight_gradient(self, p):
                p.gradients[self.weight] = p.dy.T @ p.saved

        class Keeps(Dense):
            def weight_gradient(self, p):
                super().weight_gradient(p)
                self.passed = p
        kept = Keeps("one", 5, 3)
        troupe.check_layer(kept)
        with self.assertRaisesRegex(RuntimeError, "the pass has returned"):
            print(kept.passed.x)

        class Adds(Dense):  # in place, which assigns the same array
            def input_gradient(self, p):
                super().input_gradient(p)
                if p.dx is not None:
                    p.dx *= 1

            def weight_gradient(self, p):
                super().weight_gradient(p)
                p.gradients[self.weight] *= 1
        for wrong, sentence in ((Replaces, "p.y replaces"), (ReplacesGradients, "'one.weight'. replaces")):
            with self.subTest(wrong.__name__), self.assertRaisesRegex(ValueError, sentence):
                troupe.check_layer(wrong("one", 5, 3))
        troupe.check_layer(Adds("one", 5, 3))

    def test_a_layer_of_tokens_is_proved(self):
        class Bag(troupe.Layer):
            inputs, outputs, operations = 4, 6, 24.0
            parameters = [("bag.weight", (11, 6), "uniform", 0.3)]
            saved = 4

            def forward(self, p):
                if p.x.dtype != numpy.int32:
                    raise TypeError(f"tokens are {p.x.dtype}")
                p.y[:] = p.parameters["bag.weight"][p.x].sum(axis=1)
                p.saved[:] = p.x

            def weight_gradient(self, p):
                gradient = p.gradients["bag.weight"]
                if not p.adds:
                    gradient[:] = 0
                numpy.add.at(gradient, p.saved.astype(int), p.dy[:, None, :])
        troupe.check_layer(Bag(), words=11)
        random = numpy.random.default_rng(6)
        tokens = random.integers(0, 11, (32, 4)).astype(numpy.int32)
        data = troupe.Data(tokens, (tokens[:, 0] % 3).astype(numpy.int32), held_out=8)
        network = troupe.Network([Bag(), troupe.linear("head", 6, 3)], reads_tokens=True)
        run = troupe.train(model=network, data=data, schedule="pipedream", stages=2, verify=1, **{**OWN, "steps": 60})
        self.assertTrue(run.numbers["verified"]["holds"])
        self.assertLess(run.losses[-8:].mean(), run.losses[:8].mean())

    def test_no_copy_and_no_leak(self):
        addresses = []

        class Looks(Dense):
            def weight_gradient(self, p):
                addresses.append(p.parameters[self.weight].__array_interface__["data"][0])
                super().weight_gradient(p)

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        network, data = troupe.Network([Looks("one", 6, 3)]), troupe.Data(*clusters())
        sizes = []
        for _ in range(3): # the first run makes what stays
            troupe.train(model=network, data=data, stages=1, **{**OWN, "steps": 1000})
            self.assertLessEqual(len(set(addresses)), 2) # of versions, not of passes
            addresses.clear()
            gc.collect()
            sizes.append(resident())
        self.assertLess(sizes[2] - sizes[1], 5e6)

    def test_200_runs_end_where_they_are_interrupted(self):
        network = troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)])
        data, random, endings = troupe.Data(*clusters(), held_out=16), numpy.random.default_rng(5), set()
        for _ in range(200):
            # NumPy drops a KeyboardInterrupt that comes inside its functions: none is called after the start.
            schedule, delay = ("1f1b", "pipedream")[random.integers(2)], random.uniform(0, 0.02)
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                troupe.train(model=network, data=data, schedule=schedule, stages=2, **{**OWN, "steps": 1_000_000})
                self.fail("a run of a million steps has ended")
            except troupe.Interrupted as interrupted:
                endings.update(run.ending for run in interrupted.result)
            except KeyboardInterrupt: # before the run began
                pass
            timer.join()
        self.assertLessEqual(endings, {"interrupted"})
        self.assertEqual(troupe.train(model=network, data=data, stages=2, **OWN).ending, "finished")

    def test_an_exception_of_a_signals_handler_ends_a_run(self):
        def late(*_):
            raise TimeoutError("an hour is over")
        before = signal.signal(signal.SIGUSR1, late)
        try:
            for _ in range(3):
                with self.assertRaisesRegex(TimeoutError, "an hour"):
                    troupe.train(progress=lambda *_: os.kill(os.getpid(), signal.SIGUSR1), **{**SMALL, "steps": 1_000_000}, stages=2)
        finally:
            signal.signal(signal.SIGUSR1, before)
        self.assertEqual(troupe.train(**SMALL, stages=2).ending, "finished")

    def test_a_forked_process_does_not_wait_for_the_run(self):
        script = """if True:
            import os, threading, time, troupe
            told = threading.Event()
            threading.Thread(target=troupe.train, daemon=True, kwargs=dict(
                stages=2, d_model=16, heads=2, seq=8, steps=1_000_000, progress=lambda *_: told.set())).start()
            told.wait()
            child = os.fork()
            if child == 0:
                raise SystemExit(7)
            for _ in range(600):
                ended, code = os.waitpid(child, os.WNOHANG)
                if ended:
                    break
                time.sleep(0.05)
            else:
                os.kill(child, 9)
            print(os.WEXITSTATUS(code) if ended else "waits")
            """
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual((ran.stdout, ran.returncode), ("7\n", 0), ran.stderr)

    def test_nodes_train_the_bits_of_one_process(self):
        script = f"""if True:
            import sys
            sys.argv, sys.path[:0] = ["runs.py", {PROGRAMS!r}, {DOCS!r}], [{os.path.dirname(os.path.abspath(__file__))!r}]
            import runs, troupe
            network = troupe.Network([runs.Dense("one", 6, 8), runs.Relu(8), runs.Dense("two", 8, 3)], values={{"one.bias": [0.5] * 8}})
            node = troupe.Node(model=network, data=troupe.Data(*runs.clusters(), held_out=16), threads=1)
            print(node.address, flush=True)
            sys.stdin.read()
            """
        nodes = [subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        plain = subprocess.Popen([f"{PROGRAMS}/node", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            addresses = [node.stdout.readline().strip() for node in nodes]
            network = troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)], values={"one.bias": [0.5] * 8})
            data = troupe.Data(*clusters(), held_out=16)
            options = {"model": network, "data": data, "stages": 2, **OWN}
            for more in ({"schedule": "1f1b"}, {"schedule": "pipedream"}, {"schedule": "2bw"}):
                with self.subTest(more), tempfile.TemporaryDirectory() as folder:
                    here = troupe.train(**more, **options)
                    there = troupe.train(nodes=addresses, checkpoint=folder, checkpoint_every=10, **more, **options)
                    self.assertEqual(there.losses.tolist(), here.losses.tolist())
                    self.assertEqual(there.numbers["evaluation"], here.numbers["evaluation"])
                    for name, values in here.parameters.items():
                        self.assertEqual(there.parameters[name].tobytes(), values.tobytes())
            proofs = troupe.verify(schedule="pipedream", nodes=addresses, **{**options, "steps": 4}).proofs
            self.assertEqual((set(proofs["verdict"]), len(proofs)), ({"holds"}, 2))
            other = troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)])
            for wrong, sentence in (({"model": other}, "the leader's program has a network of 3 layers, .*start the node with the same"),
                                    ({"data": troupe.Data(*clusters(), held_out=8)}, "the node's has a network of 3 layers, .*48 samples"),
                                    ({"nodes": [plain.stdout.readline().split(" with")[0].split()[-1], addresses[0]]}, "the node's has none")):
                with self.subTest(sentence), self.assertRaisesRegex(troupe.RunError, sentence):
                    troupe.train(**{"nodes": addresses, **options, **wrong})
            with self.assertRaisesRegex(troupe.RunError, "no network and data of its own"):
                troupe.train(**SMALL, stages=2, nodes=addresses)
        finally:
            for node in nodes:
                node.stdin.close()
            plain.terminate()
            for one in (*nodes, plain):
                one.wait(20)
                one.stdout.close()
        self.assertEqual([node.returncode for node in nodes], [0, 0])
        with troupe.Node(model=network, data=data) as node, self.assertRaisesRegex(ValueError, "in use"):
            troupe.Node(node.address)
        self.assertEqual(node.address, "")
        for call, error, sentence in ((lambda: troupe.Node("nowhere"), ValueError, "nowhere"), (lambda: troupe.Node("0.0.0.0:0"), ValueError, "insecure"),
                                      (lambda: troupe.Node(model="gpt"), TypeError, "is a Network")):
            with self.subTest(sentence), self.assertRaisesRegex(error, sentence):
                call()

    def test_the_interpreter_ends_during_a_run(self):
        script = f"""if True:
            import sys, threading, time
            sys.argv, sys.path[:0] = ["runs.py", {PROGRAMS!r}, {DOCS!r}], [{os.path.dirname(os.path.abspath(__file__))!r}]
            import runs, troupe
            network = troupe.Network([runs.Dense("one", 6, 8), runs.Dense("two", 8, 3)])
            told = threading.Event()
            threading.Thread(target=troupe.train, daemon=True, kwargs=dict(
                runs.OWN, model=network, data=troupe.Data(*runs.clusters(), held_out=16), schedule="pipedream",
                stages=2, steps=1_000_000, progress=lambda *_: told.set())).start()
            told.wait()
            """
        again = script.replace("threading.Thread(target=troupe.train,", """
            def runs_without_end(**options):
                while True:
                    try:
                        troupe.train(**options)
                    except BaseException:
                        pass
                    try:
                        troupe.check_layer(runs.Dense("one", 6, 8))
                    except BaseException:
                        pass
            threading.Thread(target=runs_without_end,""")
        for one in (script, again) * 2:
            ran = subprocess.run([sys.executable, "-c", one], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_programs_without_runs_give_their_results(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/weights.safetensors"
            run = troupe.train(**SMALL, stages=2, save=path)
            score, printed = troupe.evaluate(weights=path), program("evaluate", {"weights": path})
        self.assertEqual((score.loss, score.samples), (printed["loss"], printed["samples"]))
        self.assertEqual(score.loss, run.numbers["evaluation"]["loss"])
        self.assertIn("perplexity", score.table)
        options = {"schedules": "gpipe,pipedream", "stages": 2, "steps": 2}
        proved, printed = troupe.verify(**options), program("verify", options)
        self.assertEqual(proved.results["runs"], printed["runs"])
        self.assertEqual(set(proved.proofs["verdict"]), {"holds"})
        self.assertIn("plain loop", proved.proofs["proof"])
        options = {"mesh": "data=2", "d_model": 16, "heads": 2, "seq": 8}
        ranks, printed = troupe.memory(**options).ranks, program("memory", options)
        self.assertEqual(ranks["optimizer"].tolist(), [rank["optimizer"] for one in printed["runs"] for rank in one["ranks"]])
        self.assertEqual(ranks["exchange"].tolist()[::2], ["ring", "zero1", "zero2", "zero3"])
        for name in ("losses", "nothing"):
            with self.assertRaisesRegex(AttributeError, f"no attribute '{name}'"):
                getattr(score, name)
        with self.assertRaisesRegex(ValueError, "there is no page"):
            score.report("page.html")
        self.assertIn("<pre>", score._repr_html_())
        self.assertTrue(proved)

    def test_a_layer_of_ones_own_is_proved_by_verify(self):
        own = {"model": troupe.Network([Dense("one", 6, 8), Relu(8), Dense("two", 8, 3)]), "data": troupe.Data(*clusters()), "stages": 2, **OWN}
        proofs = troupe.verify(schedules=["1f1b", "pipedream"], **own).proofs
        self.assertEqual(set(proofs["verdict"]), {"holds"})

        class Forgets(Dense):  # a pass that depends on the passes before it
            calls = 0

            def forward(self, p):
                super().forward(p)
                Forgets.calls += 1
                p.y[:] += 1e-3 * Forgets.calls
        own["model"] = troupe.Network([Forgets("one", 6, 8), Dense("two", 8, 3)])
        with self.assertRaisesRegex(troupe.RunError, "FAILS .*plain loop") as failed:
            troupe.verify(schedule="1f1b", **own)
        self.assertIn("fails", failed.exception.result.proofs["verdict"])
        for name in ("evaluate", "simulate"):
            with self.assertRaisesRegex(ValueError, "takes no Network"):
                getattr(troupe, name)(model=own["model"])

    def test_a_study_has_a_row_for_each_run(self):
        with tempfile.TemporaryDirectory() as folder:
            options = {"schedules": ["gpipe", "1f1b"], "stages": 4, "cost": "F=1,B=2", "report": f"{folder}/one"}
            study = troupe.study("simulate", vary={"microbatches": [4, 8], "mesh": ["pipe=2", "data=2,pipe=2"]}, **{**options, "stages": None})
            self.assertEqual(len(study.runs), 8)
            for row in study.runs:
                microbatches = row["microbatches"] / (2 if row["mesh"].startswith("data=2") else 1)
                self.assertAlmostEqual(row["bubble"], 1 / (microbatches + 1))
            self.assertEqual(set(study.summary["schedule"]), {"gpipe", "1f1b"})
            silent = troupe.study(vary={"tied": [True, False]}, schedules="gpipe", **{**SMALL, "steps": 1}, stages=2, quiet=True,
                                  report=f"{folder}/two\udcff")
            self.assertEqual(silent.runs["tied"].tolist(), ["true", "false"])
            with self.assertRaisesRegex(ValueError, "command line"):
                troupe.study("simulate", help=True)
            study.report(f"{folder}/page.html")
            self.assertGreater(os.path.getsize(f"{folder}/page.html"), 10_000)
            self.assertIn("srcdoc", study._repr_html_())
            with open(f"{folder}/one/runs.csv", encoding="utf-8") as file:
                self.assertEqual(file.readline().split(",")[:3], list(study.runs.dtype.names[:3]))
            for options, error, sentence in (({"schedules": "no"}, ValueError, "no schedule 'no'"), ({"report": f"{folder}/one"}, ValueError, "has a study"),
                                             ({"vary": {"stages": []}}, ValueError, "stages has no values"),
                                             ({"schedule": troupe.Schedule("a", "0F0,0B0")}, ValueError, "file:PATH"),
                                             ({"nothing": 1}, ValueError, "no option '--nothing")):
                with self.subTest(options), self.assertRaisesRegex(error, sentence):
                    troupe.study("simulate", **{"report": f"{folder}/more", **options})
            with self.assertRaisesRegex(ValueError, "say compare or simulate"):
                troupe.study("train")
            with self.assertRaisesRegex(ValueError, "no Data of Python"):
                troupe.study(data=troupe.Data(*clusters()))

    def test_ctrl_c_cuts_a_study_short_and_it_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            def press():
                while not os.path.exists(f"{folder}/one/runs/00001.json"):  # of the first run
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGINT)
            pressing = threading.Thread(target=press)
            pressing.start()
            with self.assertRaises(troupe.Interrupted) as ended:
                troupe.study("compare", schedules="gpipe", seeds=4, report=f"{folder}/one", **{**SMALL, "steps": 400}, stages=1)
            pressing.join()
            endings = ended.exception.result.runs["ending"].tolist()
            self.assertEqual((endings[0], endings[-1], len(endings)), ("finished", "not run", 4))
            study = troupe.study(continue_=f"{folder}/one")
            self.assertEqual(study.runs["ending"].tolist(), ["finished"] * 4)
            self.assertIn("kept", study.table)

    def test_a_study_ends_with_its_process(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"""import troupe
troupe.study("compare", schedules="gpipe", seeds=3, report={folder!r} + "/one", stages=1, steps=1_000_000)
"""
            started = subprocess.Popen([sys.executable, "-c", script])
            while not any("compare" in words and "--json" in words for words in words_of_processes("--steps=1000000")):
                time.sleep(0.01)
            started.kill()
            started.wait()
            latest = time.monotonic() + 60
            while words_of_processes(folder):
                self.assertLess(time.monotonic(), latest, "the study goes on")
                time.sleep(0.01)

    def test_stubs_know_each_name_and_keyword(self):
        with open(os.path.join(os.path.dirname(troupe.__file__), "__init__.pyi"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        stubs = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for name in troupe.__all__:
            self.assertIn(name, stubs)
            thing, stub = getattr(troupe, name), stubs[name]
            if isinstance(stub, ast.FunctionDef):
                keywords = {one.arg for one in stub.args.args + stub.args.kwonlyargs} | ({stub.args.kwarg.arg} if stub.args.kwarg else set())
                self.assertEqual(keywords, set(inspect.signature(thing).parameters), name)
            else:
                bodies = [stub.body, *(stubs[base.id].body for base in stub.bases if getattr(base, "id", None) in stubs)]
                typed = {getattr(one, "name", None) or one.target.id for body in bodies for one in body if not isinstance(one, ast.Expr)}
                public = {key for key in vars(thing) if not key.startswith("_")}
                self.assertEqual(public - typed, set(), name)

    def test_the_notebook_runs(self):
        with open(f"{DOCS}/troupe.ipynb", encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        self.assertEqual(len(cells), 12)
        before, names, run = os.getcwd(), {}, 0
        os.environ.setdefault("MPLBACKEND", "Agg")
        missing = [name for name in ("torch", "matplotlib") if importlib.util.find_spec(name) is None]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    for cell in cells:
                        text = "".join(cell["source"])
                        if cell["cell_type"] != "code" or any(f"import {name}" in text for name in missing):
                            continue
                        if "trained" in text and "trained" not in names and "trained =" not in text:
                            continue
                        exec(compile(text, "docs/troupe.ipynb", "exec"), names)
                        run += 1
            finally:
                os.chdir(before)
        self.assertGreaterEqual(run, 6)
        self.assertEqual(len(names["proved"].proofs), 4)
        self.assertEqual([one.schedule for one in names["result"]], ["gpipe", "1f1b", "zb-v", "2bw"])
        if "trained" in names:
            self.assertEqual(names["trained"]["pipedream"].versions.tolist(), [4, 3, 2, 1])

    def test_the_documents_programs_run(self):
        with open(f"{DOCS}/python.md", encoding="utf-8") as page:
            blocks = re.findall(r"```python\n(.*?)```", page.read(), re.DOTALL)
        self.assertEqual(len(blocks), 4)
        before, names, printed = os.getcwd(), {"troupe": troupe}, io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed):
                    for block in blocks:
                        if "import torch" in block and importlib.util.find_spec("torch") is None:
                            continue
                        exec(compile(block.replace("steps=50", "steps=2"), "docs/python.md", "exec"), names)
                self.assertEqual(sorted(os.listdir()), ["page.html", "waves.csv"])
                ran = subprocess.run([f"{PROGRAMS}/simulate", "--schedule", "file:waves.csv", "--quiet"], check=False)
                self.assertEqual(ran.returncode, 0)
            finally:
                os.chdir(before)
        self.assertIn("2bw", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
