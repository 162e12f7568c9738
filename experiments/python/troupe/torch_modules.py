# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's modules as layers of a run.

Each child of an nn.Sequential is a layer. Parameters live in the run's versioned memory:
a pass hands the module tensors that share the memory of the version that the schedule
says (functional_call). The forward keeps the module's graph; the input gradient and the
weight gradient are autograd's. A child without children computes them apart, where the
schedule has them; another child computes both in the input gradient. nn.Linear has no
graph."""

import math
import threading

import numpy
import torch

from . import Layer, Network

_has_func = hasattr(torch, "func")  # since PyTorch 2
_functional_call = torch.func.functional_call if _has_func else torch.nn.utils.stateless.functional_call
_threads = threading.local()


def _set_threads(count):
    if getattr(_threads, "count", None) != count:
        torch.set_num_threads(count)
        _threads.count = count


def _call(module, named, x):
    """The module's output with parameters that are handed to it."""
    return _functional_call(module, named, (x,)) if named else module(x)


class _ModuleLayer(Layer):
    """A module by autograd. Its graph reads the run's input array, which stays until the backward has ended."""
    _may_write = True

    def __init__(self, name, module, example, output, is_first):
        self.module, self.name, self.is_first = module, name, is_first
        self.named = {f"{name}.{key}": (key, value.shape) for key, value in module.named_parameters()}
        self.parameters = [(f"{name}.{key}", tuple(value.shape) or (1,)) for key, value in module.named_parameters()]
        self.shape, output_shape = tuple(example.shape[1:]), tuple(output.shape[1:])
        self.inputs, self.outputs = math.prod(self.shape), math.prod(output_shape)
        # Of a product each parameter is used once for each row.
        rows = self.outputs // output_shape[-1]
        self.operations = 2.0 * rows * sum(value.numel() for value in module.parameters()) + self.outputs
        self.reads_tokens = not example.is_floating_point()
        self.splits = not list(module.children())
        self.graphs, self.gradients = {}, {}  # by the address of the input
        self.lock = threading.Lock()  # functional_call changes the module, which all ranks call

    def forward(self, p):
        _set_threads(p.threads)
        x = torch.from_numpy(p.x)
        key = x.data_ptr()
        x = x.long() if self.reads_tokens else x.requires_grad_(not self.is_first)
        arrays = p.parameters
        read = {key: torch.from_numpy(arrays[name]).reshape(shape).requires_grad_() for name, (key, shape) in self.named.items()}
        with torch.enable_grad(), self.lock:
            y = _call(self.module, read, x.reshape(p.samples, *self.shape))
        torch.from_numpy(p.y).copy_(y.detach().reshape(p.samples, -1))
        self.graphs[key] = x, list(read.values()), y

    def input_gradient(self, p):
        if p.dx is None:
            return
        _set_threads(p.threads)
        key = torch.from_numpy(p.x).data_ptr()
        x, read, y = self.graphs[key]
        dy = torch.from_numpy(p.dy).reshape(y.shape)
        if self.splits or not read:
            dx = torch.autograd.grad(y, x, dy, retain_graph=bool(read))[0]
        else:
            dx, *self.gradients[key] = torch.autograd.grad(y, [x, *read], dy)
        torch.from_numpy(p.dx).copy_(dx)

    def weight_gradient(self, p):
        key = torch.from_numpy(p.x).data_ptr()
        _, read, y = self.graphs.pop(key)
        gradients = self.gradients.pop(key, None)
        if not read:
            return
        _set_threads(p.threads)
        if gradients is None:
            gradients = torch.autograd.grad(y, read, torch.from_numpy(p.dy).reshape(y.shape))
        arrays, adds = p.gradients, p.adds
        for name, gradient in zip(self.named, gradients):
            to = torch.from_numpy(arrays[name])
            (to.add_ if adds else to.copy_)(gradient.reshape(to.shape))


class _LinearLayer(_ModuleLayer):
    """nn.Linear by PyTorch's products, which write into the run's arrays: y = x w^T + b, dx = dy w, dw = dy^T x."""

    def _rows(self, array, columns):
        return torch.from_numpy(array).view(-1, columns)

    def _parameters(self, arrays):
        return [torch.from_numpy(arrays[name]) for name in self.named]

    def forward(self, p):
        _set_threads(p.threads)
        w, *b = self._parameters(p.parameters)
        x, y = self._rows(p.x, w.shape[1]), self._rows(p.y, w.shape[0])
        if b:
            torch.addmm(b[0], x, w.t(), out=y)
        else:
            torch.mm(x, w.t(), out=y)

    def input_gradient(self, p):
        if p.dx is None:
            return
        _set_threads(p.threads)
        w = self._parameters(p.parameters)[0]
        torch.mm(self._rows(p.dy, w.shape[0]), w, out=self._rows(p.dx, w.shape[1]))

    def weight_gradient(self, p):
        _set_threads(p.threads)
        dw, *db = self._parameters(p.gradients)
        dy = self._rows(p.dy, dw.shape[0])
        x = self._rows(p.x, dw.shape[1])
        if p.adds:
            dw.addmm_(dy.t(), x)
        else:
            torch.mm(dy.t(), x, out=dw)
        if db:
            db[0].add_(dy.sum(0)) if p.adds else torch.sum(dy, 0, out=db[0])


def _layer(name, module, example, output, is_first):
    """The layer of a child. A plain nn.Linear needs no graph."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    is_plain = type(module) is torch.nn.Linear and not any(getattr(module, key, None) for key in hooks) and "forward" not in vars(module)
    return (_LinearLayer if is_plain else _ModuleLayer)(name, module, example, output, is_first)


def _refuse_parts(module, name):
    """Raises ValueError for parts whose passes do not repeat their bits, and for parameters that a run cannot train."""
    owners = {}
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise ValueError(f"module {name} has a {type(part).__name__}, and passes of a run repeat their bits: set its p to 0")
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            raise ValueError(f"module {name} has a {type(part).__name__}, whose statistics belong to no version: "
                             "take LayerNorm or GroupNorm, or track_running_stats=False")
        if isinstance(part, torch.nn.RNNBase) and not _has_func:
            raise ValueError(f"module {name} has a {type(part).__name__}, to which PyTorch {torch.__version__} hands no parameters: "
                             "take PyTorch 2, or a module without an RNN")
        for key, value in part.named_parameters(recurse=False):
            if owners.setdefault(id(value), (part, key)) != (part, key):
                raise ValueError(f"module {name} uses parameter {key} in two places: each place needs its own")
    for key, value in module.named_parameters():
        whose = f"parameter {name}.{key}"
        if isinstance(value, torch.nn.parameter.UninitializedParameter):
            raise ValueError(f"{whose} has no shape yet: call the module once")
        if value.dtype != torch.float32:
            raise ValueError(f"{whose} is {value.dtype}: float32 is allowed")
        if value.device.type != "cpu":
            raise ValueError(f"{whose} is on {value.device}: move the module to the CPU, as passes run there")
        if value.is_inference():
            raise ValueError(f"{whose} was made in inference mode, where nothing trains: make the module outside")
        if not value.requires_grad:
            raise ValueError(f"{whose} is frozen, and a run trains all parameters: make it a buffer (register_buffer), or set requires_grad")
        if value._backward_hooks:
            raise ValueError(f"{whose} has a hook, which a run does not call: change the gradient in the module's forward")


def _state(module):
    return {key: value.clone() for key, value in [*module.named_parameters(), *module.named_buffers()]}


def _same(one, other):
    """Whether two tensors have equal values, where NaN is equal to NaN."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


def _outputs_and_gradients(module, named, x, calls_module):
    """The output at given parameters, and the gradients of the input, if it needs one, and of the parameters."""
    wanted = ([x] if x.requires_grad else []) + list(named.values())
    y = module(x.reshape(x.shape)) if calls_module else _call(module, named, x.reshape(x.shape))
    if not isinstance(y, torch.Tensor) or not y.requires_grad:
        return y, [None] * len(wanted)
    weights = torch.linspace(-1, 2, y.numel()).reshape(y.shape)
    return y, torch.autograd.grad(y, wanted, weights.to(y.dtype), allow_unused=True)


def _refuse_other_gradients(module, name, x):
    """Raises ValueError if the module computes other values with parameters that are handed to it than with its own."""
    own = dict(module.named_parameters())
    kept = {key: value.detach().clone() for key, value in own.items()}
    other = {key: (value * 1.125 + 0.015625).requires_grad_() for key, value in kept.items()}
    y, gradients = _outputs_and_gradients(module, other, x, False)
    try:
        for key, value in own.items():
            value.data.copy_(other[key].detach())
        expected, expected_gradients = _outputs_and_gradients(module, own, x, True)
    finally:
        for key, value in own.items():
            value.data.copy_(kept[key])
    for got, wanted in zip((y, *gradients), (expected, *expected_gradients)):
        if (got is None) != (wanted is None) or got is not None and not torch.allclose(got, wanted, rtol=1e-3, atol=1e-5, equal_nan=True):
            raise ValueError(f"module {name} computes other values with parameters that a run hands to it than with its own: it reads a "
                             "parameter by a second path, as a list or a saved tensor, or outside its forward, as torch.utils.checkpoint does")


def _example_output(module, name, example, is_first):
    """The module's output of the example. Raises ValueError if passes could not repeat the output or its gradients."""
    before, random, x = _state(module), torch.get_rng_state(), example.clone()
    read = {key: value.detach().clone().requires_grad_() for key, value in module.named_parameters()}
    x.requires_grad_(not is_first)
    try:
        y, gradients = _outputs_and_gradients(module, read, x, False)
        again, _ = _outputs_and_gradients(module, read, x, False)
    except Exception as error:
        raise ValueError(f"module {name} cannot compute the example or its gradient: {error}") from error
    if not isinstance(y, torch.Tensor) or y.dtype != torch.float32 or y.dim() < 2 or y.shape[0] != x.shape[0] or y.numel() == 0:
        what = f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
        raise ValueError(f"module {name} gives {what}: a float32 tensor with a row for each of {x.shape[0]} samples is allowed")
    if not torch.equal(torch.get_rng_state(), random) or not _same(y, again):
        raise ValueError(f"module {name} gives other values when it is called again, and passes of a run repeat their bits: "
                         "it draws random numbers, or keeps state")
    after = _state(module)
    changed = [key for key, value in before.items()
               if not _same(after[key], value) or key in read and not _same(read[key], value)]
    if changed:
        raise ValueError(f"module {name} writes {changed[0]} in its forward, and passes of a run change no state")
    if not torch.equal(x, example):
        raise ValueError(f"module {name} writes its input, which other modules read: take the form that is not in place")
    for key, gradient in zip([*([] if is_first else ["its input"]), *(f"parameter {name}.{key}" for key in read)], gradients):
        if gradient is None:
            raise ValueError(f"module {name} does not use {key}, which then has no gradient")
        if gradient.layout != torch.strided:
            raise ValueError(f"module {name} gives {key} a sparse gradient: set sparse=False")
    _refuse_other_gradients(module, name, x)
    return y.detach()


def _tensor(example):
    """The example as a tensor of float32 or int64."""
    if not isinstance(example, (numpy.ndarray, torch.Tensor)):
        raise TypeError(f"example is a {type(example).__name__}: an array or a tensor of samples is allowed")
    kind, shape = str(example.dtype).replace("torch.", ""), tuple(example.shape)
    if kind not in ("float32", ">f4", "int32", ">i4", "int64", ">i8") or len(shape) < 2 or 0 in shape:
        raise ValueError(f"example is {kind} of shape {shape}: float32 values or int32 tokens of one sample or more are allowed, a row each")
    if isinstance(example, numpy.ndarray):
        example = torch.from_numpy(numpy.array(example, dtype=example.dtype.newbyteorder("=")))
    if not torch.isfinite(example).all():
        raise ValueError("example has values that are not finite")
    return example.detach().clone() if example.is_floating_point() else example.detach().long()


def _refuse_own_forward(module):
    """Raises ValueError if the Sequential does more than call its children one after another."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if type(module).forward is not torch.nn.Sequential.forward or any(getattr(module, name, None) for name in hooks):
        raise ValueError("the Sequential has a forward or hooks of its own, which a run does not call: put them into a child")


class TorchNetwork(Network):
    """The children of an nn.Sequential as layers, with the module's values as initial
    ones. Names of parameters are those of the module's state_dict. The last child gives
    logits: (samples, classes), or (samples, predictions, classes).

    example: an array or a tensor of one sample or more, float32, or int32 tokens."""

    def __init__(self, module, loss, example):
        if not isinstance(module, torch.nn.Sequential) or len(module) == 0:
            raise ValueError("torch_network takes an nn.Sequential, of which each child is a layer")
        _refuse_own_forward(module)
        if loss is not None and not (type(loss) is torch.nn.CrossEntropyLoss and loss.reduction == "mean" and loss.weight is None
                                     and loss.label_smoothing == 0 and loss.ignore_index == torch.nn.CrossEntropyLoss().ignore_index
                                     and not loss._forward_hooks and not loss._forward_pre_hooks):
            raise ValueError("the loss of a network is nn.CrossEntropyLoss() with its defaults")
        layers, seen = [], {}
        with torch.inference_mode(False), torch.enable_grad():
            values = _tensor(example)
            reads_tokens = not values.is_floating_point()
            for name, child in module.named_children():
                _refuse_parts(child, name)
                for value in child.parameters():
                    if seen.setdefault(id(value), name) != name:
                        raise ValueError(f"module {name} shares a parameter with module {seen[id(value)]}: each needs its own")
                output = _example_output(child, name, values, not layers)
                layers.append(_layer(name, child, values, output, not layers))
                values = output
        if len(layers) < len(module):
            raise ValueError("the Sequential shares a module: each child is a layer of its own")
        if values.dim() not in (2, 3):
            raise ValueError(f"the last module gives logits of shape {tuple(values.shape)}: "
                             "(samples, classes) or (samples, predictions, classes) is allowed")
        self._module, self._modules, self._training = module, layers, self._flags(module)
        super().__init__(layers, predictions=values.shape[1] if values.dim() == 3 else 1, reads_tokens=reads_tokens,
                         values={name: value.detach().numpy() for name, value in module.named_parameters()})

    @staticmethod
    def _flags(module):
        return [(type(part), part.training) for part in module.modules()], [value.requires_grad for value in module.parameters()]

    def _begin_run(self):
        if self._flags(self._module) != self._training:
            raise ValueError("the module has other children, train() or requires_grad than when torch_network was called: call it again")

    def _end_run(self):
        for layer in self._modules:  # an evaluation has no backward
            layer.graphs.clear()
            layer.gradients.clear()

    def load_into(self, module, run):
        """Copies the parameters of a run into a module of the same structure. Raises
        ValueError, and copies nothing, if names or shapes differ."""
        named, trained = dict(module.named_parameters()), run.parameters
        shapes = {name: tuple(value.shape) or (1,) for name, value in named.items()}
        if shapes != {name: value.shape for name, value in trained.items()}:
            raise ValueError("the module's parameters are not those of the run: names and shapes must be the same")
        with torch.no_grad():
            for name, value in named.items():
                value.copy_(torch.from_numpy(trained[name].reshape(value.shape).copy()))
