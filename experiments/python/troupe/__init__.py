# SPDX-License-Identifier: BSD-3-Clause
"""Runs of troupe from Python.

    import troupe
    result = troupe.compare(schedules=["gpipe", "1f1b"], stages=4, steps=20)
    print(result.table)
    result["1f1b"].losses          # a NumPy array
    result.report("page.html")

Functions have the names of programs, and keywords the names of their options with
underscores: `./troupe compare --batch 16 --tied` is `troupe.compare(batch=16,
tied=True)`. Values with commas may be lists. A wrong option raises ValueError with the
program's sentence.
"""

import atexit as _atexit
import gc as _gc
import inspect as _inspect
import io as _io
import json as _json
import numbers as _numbers
import operator as _operator
import os as _os
import time as _time
import warnings as _warnings
import weakref as _weakref
from collections.abc import Mapping as _Mapping

import numpy as _numpy

from . import _troupe

__all__ = ["Data", "Interrupted", "Layer", "Network", "Node", "Result", "Run", "RunError", "Schedule", "Study", "check_layer", "compare", "evaluate", "linear",
           "memory", "options", "simulate", "study", "torch_network", "train", "verify"]

_most_values = 2**40  # of an array
_largest_seed = 2**64 - 1

def _end_last_session():
    """Ends the run of a daemon thread, whose passes need the interpreter."""
    for node in list(_nodes):
        node.close()
    if _troupe.end_last_session():  # a pass never ends, and its frame keeps the files of its module open
        for one in _gc.get_objects():
            if isinstance(one, _io.IOBase) and not one.closed and one.writable():
                one.flush()


_atexit.register(_end_last_session)
_os.register_at_fork(after_in_child=_troupe.forget_session)


def _whole(value, name, least, most):
    """A whole number within limits. Raises TypeError or ValueError."""
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: a whole number is needed") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}: {least} to {most} is allowed")
    return number


class Schedule:
    """A schedule of one's own, as a value of `schedule` or `schedules`.

    Schedule(name, text): text in PyTorch's form, a line for each rank, as `--export`
    writes it: "0F0,0F1,0B0,0B1".

    Schedule(name, actions, stages=4, microbatches=8): actions(rank) yields the actions of
    a rank in order, each as text ("2F5": the forward of microbatch 5 at stage 2; also B,
    I, W and U) or as a tuple (stage, "F", microbatch). Stage s is on rank s, unless
    `actions` says otherwise: a rank has the stages of its actions.

    Schedule.by_slots(name, slot, stages=4, microbatches=8): slot(operation, stage,
    microbatch) is a number for each "F" and "B"; the actions of a rank run in the order
    of their slots.

    `weights` is the rule of weight versions: flush (the default), stash, vertical_sync,
    double_buffered or latest. Without a flush the actions are those of the whole run,
    `microbatches` those of a batch, and `update_every` the microbatches of an update.
    Functions are called when the schedule is made; runs do not call Python. `text` is the
    file that `./troupe ... --schedule file:` reads."""

    def __init__(self, name, actions, *, stages=None, microbatches=None, weights=None, update_every=None, most_held=None):
        if not isinstance(name, str) or not name or any(c in name for c in ",:\n\0"):
            raise ValueError(f"{name!r} is no name of a schedule: a name is a text without comma, colon, line break and NUL")
        self.name = name
        if callable(actions):
            if stages is None:
                raise ValueError("a schedule of a function needs stages=, the number of ranks")
            stages = _whole(stages, "stages", 1, 2**20)
            lines = [",".join(_cell(action) for action in actions(rank)) for rank in range(stages)]
            rules = {"weights": weights, "update_every": update_every, "most_held": most_held,
                     "microbatches": None if weights in (None, "flush") else microbatches}
            header = ",".join(f"{key}={value}" for key, value in rules.items() if value is not None)
            self.text = (f"# troupe: {header}\n" if header else "") + "\n".join(lines) + "\n"
        else:
            if any(rule is not None for rule in (stages, microbatches, weights, update_every, most_held)):
                raise ValueError("a schedule of a text has its rules in the text: '# troupe: weights=stash'")
            self.text = str(actions)

    @classmethod
    def by_slots(cls, name, slot, *, stages, microbatches):
        """A schedule that flushes, whose actions a slot orders. See Schedule."""
        def actions(rank):
            both = [(slot(op, rank, m), order, m, op) for order, op in enumerate("FB") for m in range(microbatches)]
            return [(rank, op, m) for _, _, m, op in sorted(both)]
        return cls(name, actions, stages=stages)

    def __str__(self):
        return "file:" + self.name

    def __repr__(self):
        return f"<troupe.Schedule {self.name}>"


def _cell(action):
    if isinstance(action, str):
        return action
    if not isinstance(action, tuple) or len(action) != 3 or action[1] not in tuple("FBIWU"):
        raise ValueError(f"{action!r} is no action: a text as '2F5' or a tuple (stage, operation, microbatch) with F, B, I, W or U is allowed")
    stage, operation, microbatch = action
    return f"{stage}{operation}{microbatch}"


class _Arrays(_Mapping):
    """Arrays of the run's memory by name. Values are written; arrays are not replaced."""

    def __init__(self, arrays):
        self._arrays = arrays

    def __getitem__(self, name):
        return self._arrays[name]

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    def __setitem__(self, name, array):
        if array is not self._arrays[name]:  # += assigns the same array
            raise TypeError(f"an assignment to ['{name}'] replaces an array of the run: write its values, as in p.gradients['{name}'][:] = ..")


class Layer:
    """A layer of one's own: a subclass with three passes.

    Members, which __init__ sets or the class has:
      inputs, outputs  values of each sample
      parameters       tuples (name, dims, beginning, scale): beginning is "zeros" (the
                       default), "ones", "normal" or "uniform"; scale its deviation or
                       half width. Names are unique in a network.
      operations       floating-point operations of a forward, per sample
      saved, kept, scratch   values per sample that passes keep: from the forward to the
                       end, from the input gradient to the weight gradient, and during a
                       pass

    Each pass receives an object with arrays of the run's memory, in rows of samples:
      x (int32 in a first layer that reads tokens), y, dy, dx, saved, kept, scratch,
      parameters and gradients (by name), adds, samples, threads
    forward writes y. input_gradient writes dx from dy, if dx is not None.
    weight_gradient writes `gradients`, or adds to them where `adds` is true. x and dy are
    there in both gradients, y is not. Arrays are valid until the pass returns. Passes write values, p.y[:] = .., and replace no array.
    One object serves all threads of a run, so a pass does not change it. The same input
    gives the same bits. An exception fails the run."""

    parameters = ()
    operations = 0.0
    saved = kept = scratch = 0
    _may_write = False  # arrays that are only read are read-only

    def forward(self, p):
        raise NotImplementedError("a layer has a forward")

    def input_gradient(self, p):
        if p.dx is not None:  # the first layer of a network needs none
            raise NotImplementedError("a layer has an input_gradient")

    def weight_gradient(self, p):
        """Layers without parameters need none."""


def linear(name, inputs, outputs, rectified=False):
    """PyTorch's nn.Linear, followed by a ReLU if `rectified`, computed by troupe."""
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}: a text is needed")
    return _troupe.linear(name, _whole(inputs, "inputs", 1, _most_values), _whole(outputs, "outputs", 1, _most_values), bool(rectified))


def check_layer(layer, *, samples=3, words=0, tolerance=0.01, seed=1):
    """Checks the passes of a Layer by finite differences and by their rules. Raises
    ValueError with the first difference. words > 0: the layer reads tokens below it."""
    if not isinstance(layer, Layer):
        raise TypeError(f"layer has the type {type(layer).__name__}: a subclass of Layer is needed")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}: a number above 0 is allowed")
    wrong = _troupe.check_layer(layer, _whole(samples, "samples", 1, 2**20), _whole(words, "words", 0, 2**31 - 1), tolerance,
                                _whole(seed, "seed", 0, _largest_seed))
    if wrong:
        raise ValueError(wrong)


def _initial_values(name, value, shapes):
    """A copy of values as float32. Raises ValueError if they do not fit the parameter."""
    if name not in shapes:
        raise ValueError(f"values: there is no parameter {name!r}; there are {', '.join(shapes) or 'none'}")
    array = _numpy.asarray(value)
    if array.dtype.kind not in "fiub" or isinstance(value, _numpy.ma.MaskedArray):
        raise TypeError(f"values: {name} has {array.dtype}: an array of numbers without a mask is needed")
    if array.shape != shapes[name] and not (array.shape == () and shapes[name] == (1,)):
        raise ValueError(f"values: {name} has the shape {array.shape}, and {shapes[name]} is needed")
    return _numpy.array(array, dtype=_numpy.float32)


class Network:
    """Layers in a line, as a value of `model`: Layer objects and linear(). The outputs of
    the last layer are the logits of `predictions` predictions of a sample, to which a
    softmax cross-entropy belongs. Each layer is a unit of --split. `values` are initial
    values of parameters by name, in place of those of the seed."""

    def __init__(self, layers, *, predictions=1, reads_tokens=False, values=None):
        for one in (layers := list(layers)):
            if not isinstance(one, (Layer, _troupe.Layer)):
                raise TypeError(f"a network has an object of type {type(one).__name__}: Layer objects and linear() are allowed")
        self.layers = [one if isinstance(one, _troupe.Layer) else _troupe.layer(one) for one in layers]
        shapes = {name: shape for one in self.layers for name, shape in one.shapes.items()}
        #: Initial values of parameters by name, in place of those of the seed: copies.
        self.values = {name: _initial_values(name, value, shapes) for name, value in (values or {}).items()}
        self.predictions = _whole(predictions, "predictions", 1, _most_values)
        self.reads_tokens = bool(reads_tokens)

    def _has_all_values(self):
        return set(self.values) == {name for one in self.layers for name in one.shapes}

    def _begin_run(self):
        """Raises ValueError if the network has changed since it was made."""

    def _end_run(self):
        """Drops what layers have kept of a run."""


def torch_network(module, loss=None, *, example):
    """A network of PyTorch's modules, as a value of `model`: see troupe.torch_modules."""
    from .torch_modules import TorchNetwork
    return TorchNetwork(module, loss, example)


def _native(values):
    """An array in the machine's order of bytes."""
    array = _numpy.asarray(values)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


class Data:
    """Samples of one's own, as a value of `data`.

    Data(inputs, labels, held_out=0, seed=1): arrays with a row for each sample, float32
    values or int32 tokens, and int32 labels. The last `held_out` samples are for
    evaluations. Each epoch has another order. Arrays are not copied if contiguous.

    Data.of_function(sample, inputs=, labels=1, tokens=False, held_out=0): sample(index)
    returns the inputs and labels of a sample, always the same for an index; indices
    -1, -2, .. are the held-out samples."""

    def __init__(self, inputs, labels, *, held_out=0, seed=1):
        for values, name in ((inputs, "inputs"), (labels, "labels")):
            if isinstance(values, _numpy.ma.MaskedArray):
                raise TypeError(f"{name} is a masked array, and a run reads all values: take .filled()")
        self._data = _troupe.data_of_arrays(_native(inputs), _native(labels), _whole(held_out, "held_out", 0, _most_values),
                                            _whole(seed, "seed", 0, _largest_seed))

    @classmethod
    def of_function(cls, sample, *, inputs, labels=1, tokens=False, held_out=0):
        if not callable(sample):
            raise TypeError(f"sample has the type {type(sample).__name__}: a function of an index is needed")
        result = cls.__new__(cls)
        result._data = _troupe.data_of_function(sample, _whole(inputs, "inputs", 1, _most_values), _whole(labels, "labels", 1, _most_values),
                                                bool(tokens), _whole(held_out, "held_out", 0, _most_values))
        return result


_nodes = _weakref.WeakSet()


class Node:
    """A node in this process, which performs ranks of runs that other processes lead with
    `nodes=`. A run with a Network or Data of the leader's needs the same here.

    with troupe.Node("0.0.0.0:4242", model=network, data=data, tls="..") as node:
        node.wait()

    listen is HOST:PORT; port 0 is any free port. threads: 0 is the number of cores. folder
    has the data sets that runs may read. tls names certificate, key and authority. Raises
    ValueError for a wrong setting."""

    def __init__(self, listen="127.0.0.1:0", *, model=None, data=None, threads=0, folder=".", tls="", insecure=False):
        if not isinstance(model, (Network, type(None))) or not isinstance(data, (Data, type(None))):
            raise TypeError("a node's model is a Network, its data are Data: runs of built-in models name theirs")
        own = _own_parts("train", {"model": model, "data": data})
        self._node = _troupe.Node(own, _os.fsencode(_text("listen", listen)), _whole(threads, "threads", 0, 1024),
                                  _os.fsencode(_text("folder", folder)), _os.fsencode(_text("tls", tls)), bool(insecure))
        self._network = model
        _nodes.add(self)

    @property
    def address(self):
        """HOST:PORT, as `nodes=` names it; empty when the node has ended."""
        return self._node.address

    def wait(self):
        """Serves until Ctrl-C."""
        try:
            while self.address:
                _time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self):
        """Ends the node, and the run that it performs."""
        self._node.end()
        if self._network is not None:
            self._network._end_run()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_node"):
            self._node.end()


class RunError(RuntimeError):
    """A run or a write has failed. `result` has what was done."""

    def __init__(self, message, result):
        super().__init__(message)
        self.result = result

    def __reduce__(self):  # results stay in their process
        return RunError, (str(self), None)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the runs. `result` has what was done until then."""

    def __init__(self, result):
        super().__init__("interrupted")
        self.result = result

    def __reduce__(self):  # results stay in their process
        return Interrupted, (None,)


class Run:
    """A run of a `Result`. Arrays are NumPy's; times are seconds on the run's clock."""

    def __init__(self, run, numbers):
        self._run, self._numbers = run, numbers

    @property
    def numbers(self):
        """The run's part of results.json."""
        return self._numbers

    @property
    def schedule(self):
        """The schedule as typed."""
        return self._run.schedule

    @property
    def ending(self):
        """"finished", "interrupted" or "failed"."""
        return self._run.ending

    @property
    def failure(self):
        """The reason of a failed run; otherwise empty."""
        return self._run.failure

    @property
    def losses(self):
        """Mean loss of each minibatch, in nats. A long run has means over several."""
        return self._run.losses

    @property
    def loss_samples(self):
        """Number of samples up to the end of each entry of `losses`."""
        return self._run.loss_samples

    @property
    def loss_times(self):
        """Time at which each entry of `losses` was known; empty if one is unknown."""
        return self._run.loss_times

    @property
    def gradient_norms(self):
        """Norm before clipping for each entry of `losses`; empty if not measured."""
        return self._run.gradient_norms

    @property
    def learning_rates(self):
        """Learning rate for each entry of `gradient_norms`."""
        return self._run.learning_rates

    @property
    def timeline(self):
        """The first 10,000 actions of each rank, a row each: rank, kind (F, B, I, W, U or
        R), stage, direction, microbatch, version, versions_alive, part, start, end,
        expert. `timeline_cut` tells if there were more."""
        rows = self._run.timeline
        kinds = [(name, "U1") if name == "kind" else (name, rows.dtype[name]) for name in rows.dtype.names]
        return rows.astype(kinds)

    @property
    def timeline_cut(self):
        """True if the run had more actions than `timeline`."""
        return self._run.timeline_cut

    @property
    def memory(self):
        """Peak bytes of each rank: rank, peak (all together), and parameters, gradients,
        optimizer, activations, passing and checkpoint (each alone)."""
        return self._run.memory

    @property
    def stages(self):
        """A row for each stage: versions (most alive), staleness_max, staleness_mean."""
        return self._run.stages

    @property
    def versions(self):
        """Most weight versions of each stage."""
        return self.stages["versions"]

    @property
    def staleness(self):
        """Staleness of each stage: staleness_max and staleness_mean."""
        return self.stages[["staleness_max", "staleness_mean"]]

    @property
    def parameters(self):
        """The parameters by name. Arrays are read-only views of the run's memory."""
        return self._run.parameters

    def __repr__(self):
        losses = self.losses
        return f"<troupe.Run {self.schedule}: {self.ending}" + (f", loss {losses[-1]:.4f}>" if len(losses) else ">")


def _table(rows, names):
    """A structured array of rows of texts and numbers."""
    columns = [_numpy.array(column) if column else _numpy.array([], float) for column in (zip(*rows) if rows else [()] * len(names))]
    table = _numpy.empty(len(rows), [(name, column.dtype) for name, column in zip(names, columns)])
    for name, column in zip(names, columns):
        table[name] = column
    return table


class Result:
    """The runs of a call, in order. A result of one run has the run's attributes too. A
    result without runs, as of evaluate, has those of `results`."""

    def __init__(self, session):
        self._session = session
        #: The content of results.json; empty if no run began.
        self.results = _json.loads(session.json) if session.json else {}
        numbers = self.results.get("runs", [])
        self.runs = [Run(run, numbers[i] if i < len(numbers) else {}) for i, run in enumerate(session.runs)]

    @property
    def table(self):
        """The table that the program prints."""
        return self._session.table

    def __len__(self):
        return len(self.runs)

    def __bool__(self):  # also without runs, as of verify
        return True

    def __iter__(self):
        return iter(self.runs)

    def __getitem__(self, key):
        """A run by its index or its schedule."""
        if isinstance(key, (str, Schedule)):
            key = str(key)
            found = [run for run in self.runs if run.schedule in (key, "file:" + key)]
            if len(found) != 1:
                raise KeyError(f"{key}: the runs are {', '.join(run.schedule for run in self.runs)}")
            return found[0]
        return self.runs[key]

    @property
    def proofs(self):
        """A row for each proof of verify: run, schedule, proof, verdict, detail."""
        rows = [(run["run"], run["schedule"], proof["proof"], proof["verdict"], proof["detail"])
                for run in self.results.get("runs", []) for proof in run.get("proofs", [])]
        return _table(rows, ("run", "schedule", "proof", "verdict", "detail"))

    @property
    def ranks(self):
        """A row for each exchange and rank of memory: peak bytes of each use."""
        uses = ("parameters", "gradients", "optimizer", "activations", "passing", "checkpoint")
        rows = [(run["exchange"], number, *(int(rank[use]) for use in uses))
                for run in self.results.get("runs", []) for number, rank in enumerate(run.get("ranks", []))]
        return _table(rows, ("exchange", "rank", *uses))

    def __getattr__(self, name):
        if name.startswith("_") or name in ("runs", "results"):
            raise AttributeError(f"a result has no attribute '{name}'")
        if not self.runs and name in self.results:  # of evaluate and others
            return self.results[name]
        if not self.runs or not hasattr(Run, name):
            raise AttributeError(f"a result has no attribute '{name}'")
        if len(self.runs) != 1:
            raise AttributeError(f"'{name}' belongs to a run, and the result has {len(self.runs)}: take result[0] or result['SCHEDULE']")
        return getattr(self.runs[0], name)

    def report(self, path):
        """Writes the page that a program's report has, as one HTML file."""
        if not self.runs:
            raise ValueError("there is no page: no run of train, compare or simulate began")
        with open(path, "w", encoding="utf-8") as page:
            page.write(self._session.page)

    def _repr_html_(self):
        from html import escape
        if not self.runs:
            return f"<pre>{escape(repr(self))}</pre>"
        return (f'<iframe srcdoc="{escape(self._session.page)}" style="width: 100%; height: 32em; border: 0"></iframe>')

    def __repr__(self):
        return self.table or "<troupe.Result: no run began>"


def _words(options):
    """The options as words of a command line, and the texts of schedules by name."""
    words, flags, schedules = [], [], {}
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, _numpy.bool_):
            value = bool(value)
        if value is None or value is False:
            continue
        if value is True:
            flags.append(option)
            continue
        values = _values(value)
        for one in values:
            if isinstance(one, Schedule) and schedules.setdefault(one.name, one.text) != one.text:
                raise ValueError(f"two schedules have the name {one.name}: give each a name of its own")
        texts = [_text(name, one) for one in values]
        if not texts or "" in texts:
            raise ValueError(f"{name} has an empty value: give a value, or None to leave {name} out")
        words.append(option + "=" + ",".join(texts))
    flags.sort(key=lambda flag: flag != "--quiet")  # an option that is no flag comes last, and then needs a value
    return words + flags, schedules


def _values(value):
    """The values of an option, which may be one or a list."""
    return list(value) if isinstance(value, (list, tuple, range, _numpy.ndarray)) else [value]


def _text(name, value):
    """A value as text of a command line."""
    if isinstance(value, _os.PathLike):
        value = _os.fsdecode(value)
    if not isinstance(value, (str, _numbers.Number, Schedule)) or isinstance(value, (bool, _numpy.bool_, complex)):
        kind = {"Network": "is for model=", "Data": "is for data=", "bool": "stands alone, and not in a list"}.get(
            type(value).__name__, "is no value of an option")
        raise TypeError(f"{name}: a {type(value).__name__} {kind}; a text, a number, a path, a Schedule or a list of them is allowed")
    if "\0" in str(value):
        raise ValueError(f"{name} has a NUL character, where system calls would end the text")
    return str(value)


def _own_parts(program, options):
    """Takes the network and the data of one's own out of the options."""
    network = options.pop("model") if isinstance(options.get("model"), Network) else None
    data = options.pop("data") if isinstance(options.get("data"), Data) else None
    if (network or data) and program not in ("train", "compare", "verify", "memory"):
        raise ValueError(f"{program} takes no {'Network' if network else 'Data'}: a run of train or compare has the numbers of its evaluation")
    for name in ("layers", "d_model", "heads", "seq", "vocab", "tied", "experts") if network else ():
        if options.get(name) is not None:
            raise ValueError(f"{name} is of built-in models: leave it out with a Network")
    for name in ("evaluate_data", "data_seed") if data else ():
        if options.get(name) is not None:
            raise ValueError(f"{name} has no effect, as Data has samples and an order of its own: leave it out")
    if network and network.values and options.get("init_seed") is not None and network._has_all_values():
        raise ValueError("init_seed has no effect, as the network has initial values: leave it out")
    return _troupe.own_parts(network and network.layers, network.predictions if network else 1,
                             network.reads_tokens if network else False, data and data._data, network.values if network else {})


def _perform(program, progress, options):
    for shown in ("help", "help_all", "version"):
        if options.get(shown):
            raise ValueError(f"{shown} is for the command line: see troupe.options('{program}')")
    options.setdefault("quiet", True)
    network = options.get("model")
    own = _own_parts(program, options)
    try:
        if isinstance(network, Network):
            network._begin_run()
        words, schedules = _words(options)
        session = _troupe.perform(program, [_os.fsencode(word) for word in words],
                                  {_os.fsencode(name): _os.fsencode(text) for name, text in schedules.items()}, own, progress)
    finally:
        if isinstance(network, Network):
            network._end_run()
    for note in session.notes:
        _warnings.warn(f"{program}: {note}", stacklevel=3)
    result = Result(session)
    if session.exit_code == 130:
        raise Interrupted(result)
    if session.exit_code != 0:
        raise RunError("; ".join(session.errors) or f"{program} has failed", result)
    return result


def train(*, progress=None, **options):
    """Trains a model under one schedule: `./troupe train`.

    progress(samples, loss) is called for each minibatch. Raises ValueError for a wrong
    option, RunError if the run failed, and Interrupted after Ctrl-C."""
    return _perform("train", progress, options)


def compare(*, progress=None, **options):
    """Trains the same model under several schedules: `./troupe compare`. See train()."""
    return _perform("compare", progress, options)


def simulate(**options):
    """Runs schedules in virtual time without arithmetic: `./troupe simulate`."""
    return _perform("simulate", None, options)


def verify(**options):
    """Proves runs of schedules: `./troupe verify`. A result's `proofs` has a row for each
    proof. Raises RunError with the first difference if a proof fails."""
    return _perform("verify", None, options)


def evaluate(**options):
    """Loss, perplexity and accuracy of saved weights on held-out data: `./troupe
    evaluate`. `evaluate(weights="w.safetensors").loss` is a number."""
    return _perform("evaluate", None, options)


def memory(**options):
    """Memory of each rank under each level of ZeRO: `./troupe memory`. A result's `ranks`
    has bytes, a row for each exchange and rank."""
    return _perform("memory", None, options)


def study(program="compare", *, vary=None, **options):
    """Runs `compare` or `simulate` for every combination of options and seeds:
    `./troupe study`. Each run is a program of its own.

    vary={"microbatches": [4, 8]} names the options that change, with their values.
    Returns a Study. Raises ValueError for a wrong option, RunError if runs
    failed, and Interrupted after Ctrl-C; continue_=FOLDER goes on."""
    return _studies.perform(program, vary or {}, options)


def options(program):
    """The options of a program, for example "train": {keyword: help}."""
    return {_keywords(row)[0]: row["help"] for row in _troupe.options(program)}


def _keywords(row):
    """The names of an option as keywords, the usual one first."""
    return [name[2:].replace("-", "_") for name in row["names"].split(",") if name.startswith("--")]


def _describe(function):
    """Gives a function the keywords and help of its program, for help() and for completion in a notebook."""
    signature = _inspect.signature(function)
    own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
    function.__signature__ = signature.replace(
        parameters=own + [_inspect.Parameter(name, _inspect.Parameter.KEYWORD_ONLY, default=None)
                          for row in _troupe.options(function.__name__) for name in _keywords(row)])
    lines = [f"    {name}: " + text.replace("\n", "\n        ") for name, text in options(function.__name__).items()]
    function.__doc__ += "\n\n    Keywords:\n\n" + "\n".join(lines) + "\n"


from . import studies as _studies  # noqa: E402: it takes names from above

Study = _studies.Study

for _function in (train, compare, simulate, verify, evaluate, memory):
    _describe(_function)
