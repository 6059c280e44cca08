"""Keras's own kind of optimizer and layer, made to behave like PyTorch's.

For what no argument reconciles. Everything here behaves like the *other* framework's stock form;
``dlplay/pytorch/reconciled.py`` has the same names, there behaving like Keras.
"""

from typing import Any

import keras
import tensorflow as tf

from dlplay.keras import rules
from dlplay.keras.clipping import clip
from dlplay.settings import Optimizer


@keras.saving.register_keras_serializable("dlplay", "Reconciled")
class _Update(keras.optimizers.Optimizer):
    """Updates variables by a rule of ``dlplay.keras.rules``, as ``torch.optim`` does.

    Sparse gradients are made dense first. The learning rate is a float64 variable, or a schedule;
    weight decay is added to the gradient, except in AdamW and Lion. It trains in ``fit`` and in
    ``tf.function``, and is saved with a model like any Keras optimizer.

    Parameters
    ----------
    values : settings.Optimizer or dict
    learning_rate : float or keras.optimizers.schedules.LearningRateSchedule
    **options
        Keras's own: ``loss_scale_factor``, ``gradient_accumulation_steps``, ``use_ema``, ...
    """

    _learning_rate: Any

    def __init__(self, values: Any, learning_rate: Any, **options: Any) -> None:
        for name in ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm"):
            options.pop(name, None)  # they are in ``values``
        values = Optimizer.from_dict(values) if isinstance(values, dict) else values
        super().__init__(learning_rate, **{"name": values.name, **options})
        self._values = values
        if isinstance(self._learning_rate, keras.Variable):
            self._widen_learning_rate(float(learning_rate))

    def build(self, variables: list[keras.Variable]) -> None:
        """Make what the rule keeps for each variable."""
        if self.built:
            return
        super().build(variables)
        kept = rules.kept(self._values)
        self._slots = [{name: self._slot(v, name) for name in kept} for v in variables]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Update every variable that has a gradient."""
        super().apply([_dense(g) for g in grads], trainable_variables)

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        """Update one variable and what is kept for it."""
        values = self._values
        gradient = tf.cast(gradient, variable.dtype)
        rate = tf.cast(learning_rate, tf.float64)
        weight = tf.convert_to_tensor(variable)
        if values.weight_decay and self._use_weight_decay(variable):
            weight, gradient = _decay(weight, gradient, rate, values)
        slots = self._slots[self._get_variable_index(variable)]
        state = {name: tf.convert_to_tensor(slot) for name, slot in slots.items()}
        step = tf.cast(self.iterations + 1, tf.float64)
        weight, new = rules.RULES[values.name](weight, gradient, state, rate, step, values)
        for name, value in new.items():
            slots[name].assign(value)
        variable.assign(weight)

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` makes the optimizer from."""
        return {**super().get_config(), "values": self._values.to_dict()}

    def _slot(self, variable: keras.Variable, name: str) -> keras.Variable:
        number = rules.start(self._values, name)

        def start(shape: Any, dtype: Any = None) -> tf.Tensor:
            return tf.fill(shape, tf.constant(number, dtype))  # initializers.Constant rounds

        if name == "product":
            return self.add_variable((), initializer=start, dtype="float32", name=name)
        return self.add_variable_from_reference(variable, name=name, initializer=start)

    def _widen_learning_rate(self, learning_rate: float) -> None:
        """Keras keeps a learning rate in ``floatx``: 0.01 would be 0.009999999776."""
        self._untrack_variable(self._learning_rate)
        name = "learning_rate"
        wide = keras.Variable(learning_rate, name=name, dtype="float64", trainable=False)
        self._track_variable(wide)
        self._learning_rate = wide

    def _clip_gradients(self, grads: list[tf.Tensor]) -> list[tf.Tensor]:
        return clip(grads, self._values, "pytorch")


def optimizer(
    parameters: Any, values: Optimizer, learning_rate: float
) -> keras.optimizers.Optimizer:
    """Make an optimizer that updates as PyTorch's stock one of that name does.

    Parameters
    ----------
    parameters : list of keras.Variable

    Source: https://docs.pytorch.org/docs/stable/optim.html
    """
    made = _Update(values, learning_rate)
    if values.decayed == "kernels":
        made.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    made.build(parameters)
    return made


def batch_norms(model: keras.Model) -> None:
    """Let every BatchNorm of a model keep PyTorch's running variance: the unbiased one.

    In place, before the model is compiled: the layers keep weights, statistics and arguments.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """
    for layer in model._flatten_layers(include_self=False):
        if type(layer) is keras.layers.BatchNormalization:
            object.__setattr__(layer, "__class__", _BatchNormalization)


@keras.saving.register_keras_serializable("dlplay", "BatchNormalization")
class _BatchNormalization(keras.layers.BatchNormalization):
    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        kept = tf.convert_to_tensor(self.moving_variance) * self.momentum
        outputs = super().call(inputs, training=training, mask=mask)
        if training and self.trainable:
            counted = inputs[..., 0] if mask is None else tf.boolean_mask(inputs[..., 0], mask)
            count = tf.cast(tf.size(counted), kept.dtype)
            fresh = tf.convert_to_tensor(self.moving_variance) - kept
            self.moving_variance.assign(kept + fresh * count / (count - 1))
        return outputs


def _dense(gradient: Any) -> Any:
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return tf.convert_to_tensor(gradient) if is_sparse else gradient


def _decay(
    weight: tf.Tensor, gradient: tf.Tensor, rate: tf.Tensor, values: Optimizer
) -> tuple[tf.Tensor, tf.Tensor]:
    if values.name in ("adamw", "lion"):
        return weight * tf.cast(1 - rate * values.weight_decay, weight.dtype), gradient
    return weight, gradient + values.weight_decay * weight
