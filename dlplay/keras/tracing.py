"""Follows a Keras model through one pass: layers by a stand-in for their call, and what lies
between them by TensorFlow's callbacks on eager operations.

A model is run eagerly. An activation fused into a layer is noted as a part of its own, behind it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dlplay.errors import ModelError
from dlplay.keras import kinds, stateless
from dlplay.keras.hooks import calls_through
from dlplay.keras.structure import leaves, mode
from dlplay.keras.variables import gradient, parameters, values
from dlplay.traces import Call, Part, Trace, Visit, flat_order


def follow(
    model: keras.Model,
    inputs: tuple[tf.Tensor, ...],
    *,
    keep: bool = False,
    training: bool = False,
    objective: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> Trace:
    """Run a model once and note every part that runs.

    Parameters
    ----------
    inputs : tuple of tf.Tensor
        As the model takes them.
    keep : bool
        Copy each part's input and output, not only its weights.
    training : bool
        Run in training mode, with dropout off; else in inference mode.
    objective : callable, optional
        From the model's output to a loss, whose gradients are then kept; the model's own
        regularization losses are added to it, as ``fit`` does.

    Weights and batch statistics are left as they are.

    Raises
    ------
    ModelError
        For a layer with weights that has no canonical form, by its name.
    """
    given = inputs[0] if len(inputs) == 1 else list(inputs)
    follower = _Follower()
    follower.start(list(inputs))
    with ExitStack() as stack:
        stack.enter_context(mode(model, training))
        stack.enter_context(_statistics(model))
        stack.enter_context(_stand_ins(model, follower))
        tape = stack.enter_context(tf.GradientTape() if objective else nullcontext())
        stack.enter_context(_operations(follower))
        output = model(given, training=training)
        if follower.trouble:
            raise ModelError(follower.trouble[0])
        if not isinstance(output, tf.Tensor):
            raise ModelError(
                f"The Keras model gives a {type(output).__name__}, but twins compare one tensor:"
                " make a model that gives the tensor to compare."
            )
        loss = None if objective is None else tf.add_n([objective(output), *model.losses])
    value = None if loss is None else _differentiate(follower, tape, loss)
    if keep:
        follower.fetch()
    for visit in follower.visits:
        visit.arrays = {key: values(slot) for key, slot in visit.part.slots.items()}
    return Trace(follower.visits, output.numpy(), value, follower.order(output))


def _differentiate(follower: "_Follower", tape: tf.GradientTape, loss: tf.Tensor) -> float:
    """Fill in the gradients by weights and by outputs."""
    wanted = {
        id(v): v
        for visit in follower.visits
        for slot in visit.part.slots.values()
        for v in parameters(slot)
        if v.trainable
    }
    outputs = [seen[1] for seen in follower.seen]
    by_weight, by_output = tape.gradient(loss, ([v.value for v in wanted.values()], outputs))
    gradients = dict(zip(wanted, by_weight, strict=True))
    for visit, found in zip(follower.visits, by_output, strict=True):
        visit.gradient = None if found is None else tf.convert_to_tensor(found).numpy()
        for key, slot in visit.part.slots.items():
            array = gradient(slot, gradients)
            if array is not None:
                visit.gradients[key] = array
    return float(loss)


@contextmanager
def _statistics(model: keras.Model) -> Iterator[None]:
    """Give batch statistics and random states back: a pass in training mode moves them."""
    before = [(v, tf.identity(v.value)) for v in model.variables if not v.trainable]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)


@contextmanager
def _stand_ins(model: keras.Model, follower: "_Follower") -> Iterator[None]:
    """Let the follower see every layer, fused activation and Keras operation of a model."""
    with ExitStack() as stack:
        for name, layer in leaves(model).items():
            stack.enter_context(calls_through(layer, follower.layer(name, layer)))
            if _has_fused_activation(layer):
                fused = follower.activation(name, layer)
                stack.enter_context(calls_through(layer, fused, "activation"))
        for operation in _functional_operations(model):
            stack.enter_context(calls_through(operation, follower.operation(operation)))
        yield


def _has_fused_activation(layer: keras.Layer) -> bool:
    fused = vars(layer).get("activation") not in (None, keras.activations.linear)
    return fused and not isinstance(layer, keras.layers.Activation)


def _functional_operations(model: Any) -> list[Any]:
    """Keras operations such as ``keras.ops.relu`` in a functional model, and in those inside it."""
    found = []
    for operation in getattr(model, "operations", []):
        if not isinstance(operation, keras.Layer):
            if stateless.describe_function(type(operation).__name__, (), {}, Call((), ())):
                found.append(operation)
        elif isinstance(operation, keras.Model):
            found += _functional_operations(operation)
    return found


@contextmanager
def _operations(follower: "_Follower") -> Iterator[None]:
    """Let the follower see TensorFlow's eager operations; without them it guesses sources."""
    try:
        from tensorflow.python.framework import op_callbacks
    except ImportError:  # not a public interface: a newer TensorFlow may move it
        yield
        return
    op_callbacks.add_op_callback(follower.tensorflow)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(follower.tensorflow)


def _describe(name: str, layer: keras.Layer, call: Call) -> tuple[Part, ...]:
    try:
        parts = kinds.describe(layer, call) or stateless.describe(layer, call)
    except ModelError as error:
        raise ModelError(f"Keras layer {name!r}: {error}") from error
    if parts is None and layer.weights:
        raise ModelError(
            f"Keras layer {name!r} is a {type(layer).__name__} with weights of its own, which has"
            " no canonical form: pair the model's known layers, or write it with them."
        )
    return parts or ()


class _Follower:
    """Notes one visit for each part that runs; keeps what it saw alive, so that ids stay unique."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.seen: list[tuple[tf.Tensor, tf.Tensor]] = []  # each visit's input and output
        self.trouble: list[str] = []  # raised at the end: Keras rewrites errors from inside a call
        self._running: list[tuple[Any, ...]] = []  # inputs of the leaves that are running
        self._origin: dict[int, tuple[int, ...]] = {}
        self._orders: dict[int, np.ndarray] = {}
        self._first: set[int] = set()  # tensors whose channels a Permute moved to the front
        self._single: set[int] = set()  # parts inside a layer, whose outputs cannot be seen
        self._alive: list[tf.Tensor] = []

    def start(self, inputs: list[tf.Tensor]) -> None:
        """Take the model's own inputs."""
        for tensor in inputs:
            self._remember(tensor, [], (), None)

    def layer(self, name: str, layer: keras.Layer) -> Callable[..., Any]:
        """What stands in for a leaf's ``call``."""

        def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            inputs = _tensors((args, kwargs))
            if self._running:
                return original(*args, **kwargs)
            self._running.append(tuple(inputs))
            try:
                output = original(*args, **kwargs)
            finally:
                noted = not self._running.pop()
            if not noted:
                self._leaf(name, layer, inputs, output)
            return output

        return call

    def activation(self, name: str, layer: keras.Layer) -> Callable[..., Any]:
        """What stands in for the activation fused into a leaf: first note the leaf itself."""

        def call(original: Callable[..., Any], x: tf.Tensor) -> tf.Tensor:
            self._leaf(name, layer, list(self._running[-1]), x)
            self._running[-1] = ()
            output = original(x)
            kind = getattr(original, "__name__", type(original).__name__)
            part = stateless.activation(kind, original) or Part(kind)
            self._note(f"{name} {part.kind}", part, [x], output)
            return output

        return call

    def operation(self, operation: Any) -> Callable[..., Any]:
        """What stands in for a Keras operation's ``call``."""

        def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            inputs = _tensors((args, kwargs))
            self._running.append(tuple(inputs))
            try:
                output = original(*args, **kwargs)
            finally:
                self._running.pop()
            described = Call(tuple(inputs[0].shape), tuple(output.shape))
            kind = type(operation).__name__
            part = stateless.describe_function(kind, (operation,), {}, described)
            if part is not None:
                self._note(f"{operation.name}()", part, inputs, output)
            return output

        return call

    def tensorflow(
        self,
        op_type: str | bytes,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: str | None = None,
        graph: Any = None,
    ) -> None:
        """TensorFlow's callback on each eager operation."""
        if self._running or graph is not None:
            return
        op_type = op_type.decode() if isinstance(op_type, bytes) else op_type  # TensorFlow has both
        given = _tensors(inputs)
        for output in _tensors(outputs):
            floating = output.dtype.is_floating and any(t.dtype.is_floating for t in given)
            call = Call(tuple(given[0].shape) if given else (), tuple(output.shape))
            part = stateless.describe_function(op_type, (), {}, call) if floating else None
            sources = self._sources(given, guess=False)
            if part is not None and sources:
                self._note(f"{op_type.lower().removesuffix('v2')}()", part, given, output)
                self._transposed(op_type, given, output)
            else:
                self._remember(output, given, sources, None)

    def order(self, tensor: tf.Tensor) -> np.ndarray | None:
        """In which order a tensor's features are, where they are a flattened image."""
        return self._orders.get(id(tensor))

    def fetch(self) -> None:
        """Turn what was seen into NumPy arrays."""
        for index, visit in enumerate(self.visits):
            before, after = self.seen[index]
            visit.input, visit.output = before.numpy(), after.numpy()
            if index in self._single:
                visit.output = visit.gradient = None

    def _leaf(self, name: str, layer: keras.Layer, inputs: list[tf.Tensor], output: Any) -> None:
        outputs = _tensors(output)
        if not inputs or not outputs:
            return
        order = self._orders.get(id(inputs[0]))
        try:
            call = Call(tuple(inputs[0].shape), tuple(outputs[0].shape), order)
            parts = _describe(name, layer, call)
        except ModelError as error:
            self.trouble.append(str(error))
            return
        sources, base = self._sources(inputs), len(self.visits)
        for part in parts:
            fed = tuple(base + place for place in part.after) or sources
            self._note(name + part.suffix, part, inputs, outputs[0], layer, fed)
            self.visits[-1].input_order = order
        self._single.update(range(base, len(self.visits) - 1))
        dims = tuple(layer.dims) if isinstance(layer, keras.layers.Permute) else ()
        if dims and dims == (len(dims), *range(1, len(dims))):
            self._first.add(id(outputs[0]))
        for other in outputs if not parts else outputs[1:]:
            self._remember(other, inputs, (len(self.visits) - 1,) if parts else sources, None)

    def _note(
        self,
        name: str,
        part: Part,
        inputs: list[tf.Tensor],
        output: tf.Tensor,
        layer: keras.Layer | None = None,
        sources: tuple[int, ...] | None = None,
    ) -> None:
        found = self._sources(inputs) if sources is None else sources
        visit = Visit(name, part, found, layer)
        self.visits.append(visit)
        self.seen.append((inputs[0], output))
        self._remember(output, inputs, (len(self.visits) - 1,), part)
        visit.order = self._orders.get(id(output))

    def _sources(self, inputs: list[tf.Tensor], guess: bool = True) -> tuple[int, ...]:
        known = [self._origin[id(tensor)] for tensor in inputs if id(tensor) in self._origin]
        if not known and guess and self.visits:
            return (len(self.visits) - 1,)
        return tuple(dict.fromkeys(index for origin in known for index in origin))

    def _remember(
        self, tensor: tf.Tensor, inputs: list[tf.Tensor], origin: tuple[int, ...], part: Part | None
    ) -> None:
        """Where a tensor comes from, and what its axes are."""
        self._origin[id(tensor)] = origin
        self._alive.append(tensor)
        if not inputs:
            return
        source, weighted = inputs[0], part is not None and "kernel" in part.slots
        flattens = tensor.shape.rank == 2 and source.shape.rank > 2
        if id(source) in self._first and flattens and not weighted:
            order = flat_order(tuple(source.shape[1:]), channels_first=True)
            if order is not None:
                self._orders[id(tensor)] = order
        elif tensor.shape == source.shape and not weighted:
            if id(source) in self._first:
                self._first.add(id(tensor))
            if id(source) in self._orders:
                self._orders[id(tensor)] = self._orders[id(source)]

    def _transposed(self, op_type: str, inputs: list[tf.Tensor], output: tf.Tensor) -> None:
        rank = output.shape.rank
        if op_type == "Transpose" and list(inputs[1].numpy()) == [0, rank - 1, *range(1, rank - 1)]:
            self._first.add(id(output))


def _tensors(found: Any) -> list[tf.Tensor]:
    """The tensors in a call's arguments or results, in order."""
    if isinstance(found, tf.Tensor):
        return [found]
    if isinstance(found, dict):
        found = found.values()
    elif not isinstance(found, (tuple, list)):
        return []
    return [tensor for value in found for tensor in _tensors(value)]
