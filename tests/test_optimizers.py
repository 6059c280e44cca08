"""Every optimizer, in both wings, against the other framework's, in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
import torch
from tiny import Training

from dlplay.errors import SettingError
from dlplay.keras import optimizers as keras_optimizers
from dlplay.pytorch import optimizers as torch_optimizers
from dlplay.settings import Optimizer

#: Rounding alone: 50 steps of float64 (2e-16 a step) were at most 4e-15 apart.
EXACT = 1e-12

O = Optimizer  # noqa: E741
_DECAY = {"weight_decay": 0.1}
_HEAVY = {"rmsprop_momentum": 0.9, "centered": True}
_CUT = {"learning_rate": 0.1, "changes": {30: 0.01}}

#: What is trained, and by how much the two frameworks' own formulas then differ: from and to.
#: The measured size is beside each; it depends on this tiny network and not on the machine.
CASES = {
    "sgd": (Training(O("sgd")), 1e-9, 1e-6),  # 8e-8: momentum 0.9 and rate go through float32
    "sgd-nesterov": (Training(O("sgd", nesterov=True)), 1e-9, 1e-6),
    "sgd-rate-changes": (Training(O("sgd"), **_CUT), 1e-2, 1.0),  # 0.3: velocity holds rate * g
    "sgd-plain": (Training(O("sgd", momentum=0.0)), 1e-11, 1e-7),
    "sgd-decay": (Training(O("sgd", **_DECAY)), 1e-3, 1.0),  # coupled against decoupled
    "sgd-plain-decay": (Training(O("sgd", momentum=0.0, **_DECAY)), 1e-11, 1e-7),  # the same there
    "adam": (Training(O("adam")), 1e-7, 1e-4),  # 3e-6: where epsilon joins
    "adam-small": (Training(O("adam"), scale=1e-4), 1e-3, 0.1),  # 8e-3: gradients near epsilon
    "adam-amsgrad": (Training(O("adam", amsgrad=True)), 1e-7, 1e-4),
    "adam-decay": (Training(O("adam", **_DECAY)), 1e-3, 1.0),
    "adamw": (Training(O("adamw", **_DECAY)), 1e-7, 1e-4),
    "rmsprop": (Training(O("rmsprop", beta_2=0.9)), 1e-5, 1e-2),  # 2e-4: epsilon in the root
    "rmsprop-small": (Training(O("rmsprop", beta_2=0.9), scale=1e-3), 1e-3, 1.0),
    "rmsprop-centered": (Training(O("rmsprop", beta_2=0.9, **_HEAVY)), 1e-3, 1.0),
    "adagrad": (Training(O("adagrad")), 1e-7, 1e-3),  # 7e-6
    "adagrad-start": (Training(O("adagrad", initial_accumulator=0.1)), 1e-10, 1e-6),
    "adadelta": (Training(O("adadelta", beta_2=0.95), 1.0), 0.0, EXACT),  # the same formula
    "adamax": (Training(O("adamax")), 1e-10, 1e-6),  # 1e-8
    "nadam": (Training(O("nadam")), 1e-4, 1e-1),  # 7e-3: momentum_decay 0.004 against 1
    "nadam-decay-1": (Training(O("nadam", momentum_decay=1.0)), 1e-10, 1e-4),
    "lion": (Training(O("lion", beta_2=0.99)), 1e-11, 1e-7),  # 5e-9: rate goes through float32
    "lion-decay": (Training(O("lion", beta_2=0.99, **_DECAY)), 1e-11, 1e-7),
    "kernels-decay": (Training(O("adamw", decayed="kernels", **_DECAY)), 1e-7, 1e-4),
    "clip-global": (Training(O("adam", clipping="global_norm", clip_at=0.01)), 1e-5, 1e-2),
    "clip-each": (Training(O("adam", clipping="norm", clip_at=0.01)), 1e-5, 1e-2),
    "clip-value": (Training(O("adam", clipping="value", clip_at=0.01)), 1e-7, 1e-3),
}


@pytest.mark.parametrize("case", CASES)
def test_own_formulas_differ_as_measured(case: str) -> None:
    training, low, high = CASES[case]
    assert low <= training.difference() <= high


@pytest.mark.parametrize("like", ["pytorch", "keras"])
@pytest.mark.parametrize("case", CASES)
def test_one_formula_for_both_leaves_no_difference(case: str, like: str) -> None:
    assert CASES[case][0].difference((like, like)) <= EXACT


@pytest.mark.parametrize("case", CASES)
def test_float32_stays_close(case: str) -> None:
    """50 steps of float32, 6e-8 each: measured at most 8e-7."""
    training = Training(**{**vars(CASES[case][0]), "dtype": "float32"})
    assert training.difference(("pytorch", "pytorch")) <= 1e-5


def test_dampening_is_pytorchs_alone() -> None:
    training = Training(O("sgd", dampening=0.5))
    assert training.difference(("pytorch", "pytorch")) <= EXACT
    assert training.difference(("own", "pytorch")) <= EXACT


@pytest.mark.parametrize("like", ["own", "keras"])
def test_keras_has_no_dampening_and_says_so(like: str) -> None:
    with pytest.raises(SettingError, match="Keras's SGD has no dampening"):
        keras_optimizers.make(tiny.keras_model(), O("sgd", dampening=0.5, like=like), 0.1)


def test_pytorch_cannot_follow_keras_into_dampening() -> None:
    with pytest.raises(SettingError, match="Keras's SGD has no dampening"):
        torch_optimizers.make(tiny.torch_model(), O("sgd", dampening=0.5, like="keras"), 0.1)


def test_nesterov_and_dampening_do_not_go_together() -> None:
    with pytest.raises(SettingError, match="do not go together"):
        O("sgd", nesterov=True, dampening=0.1)


def test_exact_hyperparameters_reconcile_without_a_native_form() -> None:
    """PARITY: momentum 0.875 and rate 2**-7 are the same in float32 and float64."""
    assert Training(O("sgd", momentum=0.875), 2**-7).difference() <= EXACT


def test_floatx_does_not_reach_a_cast() -> None:
    """Stock Keras rounds what it casts, through float32, whatever ``floatx`` is."""
    assert float(keras.ops.cast(0.9, "float64")) == float(np.float32(0.9))
    assert float(keras.ops.multiply(tf.constant(1.0, tf.float64), 0.9)) == 0.9


@pytest.mark.parametrize("name", Optimizer.rule("name").options)
def test_own_optimizers_are_the_frameworks_own_classes(name: str) -> None:
    theirs = keras_optimizers.make(tiny.keras_model(), O(name), 0.1)
    assert type(theirs).__module__.startswith("keras.src.optimizers")
    ours = torch_optimizers.make(tiny.torch_model(), O(name), 0.1)
    assert (type(ours).__module__.startswith("torch.optim")) == (name != "lion")


@pytest.mark.parametrize("name", Optimizer.rule("name").options)
def test_defaults_of_torch_and_keras_differ(name: str) -> None:
    """What each framework does when it is told nothing: the rows 'defaults' of PARITY."""
    if name == "lion":
        assert not hasattr(torch.optim, "Lion")
        return
    spelled = {"sgd": "SGD", "adamw": "AdamW", "rmsprop": "RMSprop"}.get(name, name.capitalize())
    theirs = getattr(keras.optimizers, spelled)()
    spelled = "NAdam" if name == "nadam" else spelled
    ours = getattr(torch.optim, spelled)([torch.zeros(1, requires_grad=True)]).defaults
    assert _apart(ours, theirs.get_config())


def _apart(ours: dict, theirs: dict) -> bool:
    epsilon = ours.get("eps", 0.0) != theirs.get("epsilon", 0.0)
    return epsilon or not np.isclose(ours["lr"], theirs["learning_rate"])
