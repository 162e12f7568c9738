# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's modules as layers of a run.

Each child of an nn.Sequential is a layer. Parameters live in the run's versioned memory:
a pass hands the module tensors that share the memory of the version that the schedule
says (functional_call). The forward keeps the module's graph; the input gradient and the
weight gradient are autograd's. A child without children computes them apart, where the
schedule has them; another child computes both in the input gradient."""

import math
import threading

import numpy
import torch

from . import Layer, Network

_functional_call = torch.func.functional_call if hasattr(torch, "func") else torch.nn.utils.stateless.functional_call
_threads = threading.local()


def _set_threads(count):
    if getattr(_threads, "count", None) != count:
        torch.set_num_threads(count)
        _threads.count = count


class _ModuleLayer(Layer):
    _may_write = True

    def __init__(self, name, module, example):
        self.module, self.name = module, name
        self.named = {f"{name}.{key}": key for key, _ in module.named_parameters()}
        self.parameters = [(f"{name}.{key}", tuple(value.shape) or (1,)) for key, value in module.named_parameters()]
        self.shape = tuple(example.shape[1:])
        with torch.no_grad():
            self.example = module(example)
        self.inputs, self.outputs = math.prod(self.shape), math.prod(self.example.shape[1:])
        self.output_shape = tuple(self.example.shape[1:])
        # Of a product each parameter is used once for each row.
        rows = self.outputs // self.output_shape[-1]
        self.operations = 2.0 * rows * sum(value.numel() for value in module.parameters()) + self.outputs
        self.reads_tokens = not example.is_floating_point()
        self.saved = self.inputs
        self.splits = not list(module.children())
        self.graphs, self.gradients = {}, {}

    def forward(self, p):
        _set_threads(p.threads)
        if self.reads_tokens:
            x = torch.from_numpy(p.x).long()
        else:
            p.saved[:] = p.x
            x = torch.from_numpy(p.saved).requires_grad_()
        read = {key: torch.from_numpy(p.parameters[name]).reshape(value.shape).requires_grad_()
                for (name, key), value in zip(self.named.items(), self.module.parameters())}
        with torch.enable_grad():
            y = _functional_call(self.module, read, (x.reshape(p.samples, *self.shape),))
        torch.from_numpy(p.y).copy_(y.detach().reshape(p.y.shape))
        self.graphs[self._key(p)] = x, list(read.values()), y

    def input_gradient(self, p):
        if p.dx is None:
            return
        _set_threads(p.threads)
        x, read, y = self.graphs[self._key(p)]
        dy = torch.from_numpy(p.dy).reshape(y.shape)
        if self.splits or not read:
            dx = torch.autograd.grad(y, x, dy, retain_graph=bool(read))[0]
        else:
            dx, *self.gradients[self._key(p)] = torch.autograd.grad(y, [x, *read], dy)
        torch.from_numpy(p.dx).copy_(dx)

    def weight_gradient(self, p):
        _set_threads(p.threads)
        _, read, y = self.graphs.pop(self._key(p))
        gradients = self.gradients.pop(self._key(p), None)
        if not read:
            return
        if gradients is None:
            gradients = torch.autograd.grad(y, read, torch.from_numpy(p.dy).reshape(y.shape))
        for name, gradient in zip(self.named, gradients):
            to = torch.from_numpy(p.gradients[name])
            (to.add_ if p.adds else to.copy_)(gradient.reshape(to.shape))

    def _key(self, p):
        return p.saved.__array_interface__["data"][0]


def _refuse_stateful(module, name):
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise ValueError(f"module {name} has a {type(part).__name__}, and passes of a run repeat their bits: set its p to 0")
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            raise ValueError(f"module {name} has a {type(part).__name__}, whose statistics belong to no version: "
                             "take LayerNorm or GroupNorm, or track_running_stats=False")


class TorchNetwork(Network):
    """The children of an nn.Sequential as layers, with the module's values as initial
    ones. Names of parameters are those of the module's state_dict. The last child gives
    logits: (samples, classes), or (samples, predictions, classes).

    example: an array or a tensor of one sample or more, float32, or int32 tokens."""

    def __init__(self, module, loss, example):
        if not isinstance(module, torch.nn.Sequential) or len(module) == 0:
            raise ValueError("torch_network takes an nn.Sequential, of which each child is a layer")
        if loss is not None and not (isinstance(loss, torch.nn.CrossEntropyLoss) and loss.reduction == "mean"
                                     and loss.weight is None and loss.label_smoothing == 0):
            raise ValueError("the loss of a network is nn.CrossEntropyLoss() with its defaults")
        values = torch.from_numpy(example) if isinstance(example, numpy.ndarray) else example
        values = values.detach() if values.is_floating_point() else values.detach().long()
        reads_tokens, layers, seen = not values.is_floating_point(), [], {}
        for name, child in module.named_children():
            _refuse_stateful(child, name)
            for key, value in child.named_parameters():
                if value.dtype != torch.float32:
                    raise ValueError(f"parameter {name}.{key} is {value.dtype}: float32 is allowed")
                if seen.setdefault(id(value), name) != name:
                    raise ValueError(f"module {name} shares a parameter with module {seen[id(value)]}: each needs its own")
            try:
                layers.append(_ModuleLayer(name, child, values))
            except RuntimeError as error:
                raise ValueError(f"module {name} cannot compute the example: {error}") from error
            values = layers[-1].example
            del layers[-1].example
        if len(layers) < len(module):
            raise ValueError("the Sequential shares a module: each child is a layer of its own")
        if values.dim() not in (2, 3):
            raise ValueError(f"the last module gives logits of shape {tuple(values.shape)}: "
                             "(samples, classes) or (samples, predictions, classes) is allowed")
        super().__init__(layers, predictions=values.shape[1] if values.dim() == 3 else 1, reads_tokens=reads_tokens,
                         values={name: value.detach().numpy() for name, value in module.named_parameters()})

    def load_into(self, module, run):
        """Copies the parameters of a run into a module of the same structure."""
        with torch.no_grad():
            for name, value in module.named_parameters():
                value.copy_(torch.from_numpy(run.parameters[name].reshape(value.shape).copy()))
