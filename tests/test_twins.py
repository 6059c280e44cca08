"""Twins: aligned, compared, explained, and given back as they were found."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers
from torch import nn
from torch.nn import functional

import dlplay
from dlplay.errors import ModelError
from dlplay.settings import Optimizer
from dlplay.twins import Comparison, Twins

X = np.random.default_rng(0).normal(size=(4, 8, 8, 3))
Y = np.arange(4)


def torch_net(slope: float = 0.01, eps: float = 1e-5) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4, eps=eps),
        nn.LeakyReLU(slope),
        nn.Flatten(),
        nn.Linear(64, 5),
    )


def keras_net(
    same: bool = False, epsilon: float = 1e-5, slope: float = 0.01, **dense: Any
) -> keras.Sequential:
    conv = (
        [layers.Conv2D(4, 3, strides=2, padding="same")]
        if same
        else [layers.ZeroPadding2D(1), layers.Conv2D(4, 3, strides=2)]
    )
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            *conv,
            layers.BatchNormalization(epsilon=epsilon, momentum=0.9),
            layers.LeakyReLU(negative_slope=slope),
            layers.Flatten(),
            layers.Dense(5, **dense),
        ]
    )


def paired(**changes: Any) -> Twins:
    torch.manual_seed(0)
    twins = dlplay.twins(torch_net(), keras_net(**changes), X)
    twins.copy_weights()
    return twins


class Functional(nn.Module):
    """All that the framework lets one write without a module."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.entry = nn.Conv2d(3, 4, 3), nn.Linear(144, 16)
        self.shared, self.head = nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(torch.flatten(functional.relu(self.conv(x)), 1))
        return self.head(torch.tanh(self.shared(self.shared(x)) + x))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.conv = layers.Conv2D(4, 3, activation="relu")
        self.entry, self.shared, self.head = layers.Dense(16), layers.Dense(16), layers.Dense(5)

    def call(self, x: Any) -> Any:
        x = self.entry(keras.ops.reshape(self.conv(x), (-1, 144)))
        return self.head(keras.ops.tanh(self.shared(self.shared(x)) + x))


def functional_keras() -> keras.Model:
    inputs = keras.Input((8, 8, 3))
    x = layers.Flatten()(keras.ops.relu(layers.Conv2D(4, 3)(inputs)))
    x, shared = layers.Dense(16)(x), layers.Dense(16)
    return keras.Model(inputs, layers.Dense(5)(keras.ops.tanh(shared(shared(x)) + x)))


@pytest.mark.parametrize("made", [Subclassed, functional_keras], ids=["subclassed", "functional"])
@pytest.mark.parametrize("source", ["pytorch", "keras"])
def test_functions_shared_layers_and_skips_are_aligned(
    made: Callable[[], keras.Model], source: str
) -> None:
    twins = dlplay.twins(Functional(), made(), X)
    twins.copy_weights(source)
    comparison = twins.compare(X, Y)
    assert comparison.agree, comparison.summary()
    kinds = [pair.kind for pair in twins.alignment if pair.both]
    assert kinds.count("dense") == 4
    assert {"relu", "tanh"} <= set(kinds)


def test_parallel_branches_that_run_in_another_order_are_aligned() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.long = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, padding=1))
            self.short = nn.Conv2d(3, 4, 3, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.long(x) + self.short(x)

    inputs = keras.Input((8, 8, 3))
    short = layers.Conv2D(4, 3, use_bias=False)(inputs)
    long = layers.Conv2D(4, 3, padding="same")(layers.Conv2D(4, 3)(inputs))
    twins = dlplay.twins(Branches(), keras.Model(inputs, long + short), X)
    # Both first convolutions have one shape and lie equally deep; only the order is left to tell.
    names = {p.torch.name: p.keras.name for p in twins.alignment if p.torch and p.keras}
    assert len(names) >= 3


def test_match_says_which_layers_correspond() -> None:
    class Swapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(x) - 2 * self.b(x)

    inputs = keras.Input((6,))
    two, one = layers.Dense(6, name="two")(inputs), layers.Dense(6, name="one")(inputs)
    model = keras.Model(inputs, one - 2 * two)
    x = np.random.default_rng(1).normal(size=(3, 6))
    twins = dlplay.twins(Swapped(), model, x, match={"a": "one", "b": "two"})
    twins.copy_weights()
    assert twins.compare(x).agree


def test_match_refuses_a_name_that_is_not_there() -> None:
    with pytest.raises(ModelError, match=r"'9'.*nearest names are '4', '1', '0'"):
        dlplay.twins(torch_net(), keras_net(), X, match={"9": "conv2d"})


def test_flatten_after_permute_needs_no_reordering() -> None:
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.Permute((3, 1, 2)),
            layers.Flatten(),
            layers.Dense(5),
        ]
    )
    torch_model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    twins = dlplay.twins(torch_model, model, X)
    twins.copy_weights()
    assert twins.compare(X).output.relative < 1e-6
    np.testing.assert_array_equal(torch_model[3].weight.detach().T, model.layers[-1].kernel.numpy())


def test_an_example_with_channels_first_or_none_at_all_will_do() -> None:
    twins = dlplay.twins(torch_net(), keras_net())
    twins.copy_weights()
    assert twins.compare(X).agree
    first = dlplay.twins(torch_net(), keras_net(), np.moveaxis(X, -1, 1))
    assert first.example[0].shape == X.shape


CAUSES = {
    "padding": ({"same": True}, "Padding"),
    "epsilon": ({"epsilon": 1e-3}, "BatchNorm's epsilon"),
    "slope": ({"slope": 0.3}, "LeakyReLU"),
    "softmax": ({"activation": "softmax"}, "softmax that only Keras has"),
}


@pytest.mark.parametrize("changes", CAUSES, ids=str)
def test_the_first_difference_is_named_and_verified(changes: str) -> None:
    options, name = CAUSES[changes]
    first = paired(**options).compare(X).first
    assert first is not None
    (explanation,) = first.explanations
    assert name in explanation.difference.name
    assert explanation.verified
    assert explanation.after.relative < 1e-6 < 1e-5 < explanation.before.relative
    assert set(explanation.code) == {"pytorch", "keras"}


MISTAKES: dict[str, Callable[[nn.Sequential, list[np.ndarray]], None]] = {}


def test_a_kernel_copied_without_the_flatten_order_is_named() -> None:
    twins = paired()
    naive = twins.models["pytorch"][4].weight.detach().numpy().T
    twins.models["keras"].layers[-1].kernel.assign(naive)
    first = twins.compare(X).first
    assert first is not None
    assert first.explanations[0].difference.name.startswith("Flatten order")
    assert first.explanations[0].verified


@pytest.mark.parametrize(
    ("torch_layer", "keras_layer", "copied", "name"),
    [
        (nn.Linear(6, 6), layers.Dense(6), lambda m: m.weight, "without transposing"),
        (nn.Conv1d(6, 6, 3), layers.Conv1D(6, 3), lambda m: m.weight.reshape(3, 6, 6), "reshaped"),
    ],
    ids=["dense", "convolution"],
)
def test_a_kernel_copied_wrongly_is_named(
    torch_layer: Any, keras_layer: Any, copied: Any, name: str
) -> None:
    x = np.random.default_rng(0).normal(size=(4, 9, 6))
    model = keras.Sequential([keras.Input((9, 6)), keras_layer])
    twins = dlplay.twins(nn.Sequential(torch_layer), model, x)
    twins.copy_weights()
    keras_layer.kernel.assign(copied(torch_layer).detach().numpy())
    first = twins.compare(x).first
    assert first is not None
    assert name in first.explanations[0].difference.name
    assert first.explanations[0].verified


def test_two_biases_are_named_by_their_update() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 6))

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[1][0][0]

    twins = dlplay.twins(Last(), keras.Sequential([keras.Input((5, 6)), layers.LSTM(4)]), x)
    twins.copy_weights()
    first = twins.compare(x, Y, steps=1, learning_rate=0.1).first
    assert first is not None
    assert first.stage == "update"
    assert "How many biases" in first.explanations[0].difference.name
    assert first.explanations[0].verified


def test_the_moving_variance_is_named_by_its_update() -> None:
    first = paired().compare(X, Y, steps=1).first
    assert first is not None
    assert "moving variance" in first.explanations[0].difference.name
    assert first.explanations[0].verified


def test_a_penalty_that_only_keras_has_is_named_by_its_gradient() -> None:
    first = paired(kernel_regularizer=keras.regularizers.L2(0.05)).compare(X, Y).first
    assert first is not None
    assert first.stage == "gradient"
    assert first.explanations[0].keras == "L2(0.05)"


def mlp(dtype: str) -> Twins:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).to(getattr(torch, dtype))
    other = keras.Sequential(
        [
            keras.Input((6,), dtype=dtype),
            layers.Dense(8, activation="tanh", dtype=dtype),
            layers.Dense(4, dtype=dtype),
        ]
    )
    twins = dlplay.twins(model, other, np.random.default_rng(0).normal(size=(4, 6)))
    twins.copy_weights()
    return twins


def test_an_optimizers_formula_is_named_and_its_other_form_reconciles() -> None:
    rule = Optimizer("adam", epsilon=1e-3)
    twins = mlp("float64")
    first = twins.compare(y=Y, optimizer=rule, steps=2).first
    assert first is not None
    assert "formula of adam" in first.explanations[0].difference.name
    assert first.explanations[0].verified
    same = twins.compare(y=Y, optimizer=rule.replace(like="pytorch"), steps=5)
    assert same.agree
    gaps = [gap for row in same.layers if row.updates for gap in row.updates[5].values()]
    assert len(gaps) == 4  # kernel and bias of two layers
    assert max(gap.relative for gap in gaps) < 1e-11


def test_reconcile_lists_code_and_sets_what_can_be_set() -> None:
    twins = paired(epsilon=1e-3, slope=0.3)
    listed = twins.reconcile()
    assert "epsilon=1e-05" in listed.code("keras")
    assert "negative_slope = 0.3" in listed.code("pytorch")
    assert not twins.compare(X).agree
    applied = twins.reconcile(apply="keras")
    assert {change.applied for change in applied} == {"keras", ""}
    assert twins.compare(X).agree


def test_a_comparison_prints_and_goes_to_json() -> None:
    comparison = paired(same=True).compare(X, Y, steps=1)
    assert "<- first" in str(comparison)
    assert "<table>" in comparison._repr_html_()
    assert "<script" not in comparison._repr_html_()
    plain = json.loads(json.dumps(comparison.to_dict()))
    assert plain["first"]["torch"] == "0"
    assert plain["layers"][0]["output"]["relative"] > 0.1


def state(twins: Twins) -> list[Any]:
    model, other = twins.models["pytorch"], twins.models["keras"]
    return [
        [array.clone().numpy() for array in model.state_dict().values()],
        [variable.numpy() for variable in other.variables],
        [module.training for module in model.modules()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        [sorted(k for k in vars(layer) if k == "call") for layer in other.layers],
        [parameter.grad for parameter in model.parameters()],
        torch.get_rng_state().numpy(),
        random.getstate(),
        np.random.get_state()[1],  # type: ignore[index]
        keras.config.dtype_policy().name,
    ]


def same(one: Any, two: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


@pytest.mark.parametrize("fails", [False, True], ids=["as it goes", "with an exception"])
def test_models_come_back_as_they_were_found(fails: bool) -> None:
    twins = paired()
    twins.models["pytorch"][1].eval()
    before = state(twins)

    def broken(output: Any, y: Any) -> Any:
        raise RuntimeError("on purpose")

    loss = {"pytorch": broken, "keras": broken} if fails else None
    try:
        twins.compare(X, Y, loss=loss, steps=2)
    except RuntimeError:
        assert fails
    assert same(before, state(twins))


def test_dropout_is_off_in_a_comparison_and_only_there() -> None:
    x = np.ones((4, 6))
    model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 4))
    other = keras.Sequential(
        [keras.Input((6,)), layers.Dense(6), layers.Dropout(0.5), layers.Dense(4)]
    )
    twins = dlplay.twins(model, other, x)
    twins.copy_weights()
    assert twins.compare(x, Y, steps=2).agree
    assert not torch.equal(model(torch.ones(4, 6)), model(torch.ones(4, 6)))


def test_an_untrue_twin_is_not_called_rounding() -> None:
    twins = mlp("float32")
    kernel = twins.models["keras"].layers[0].kernel
    kernel.assign(kernel + 1e-3)
    comparison: Comparison = twins.compare(y=Y)
    assert comparison.first is not None
    assert comparison.first.explanations[0].difference.option == "weights"


ORDERS = [
    "import dlplay; call = dlplay.twins",
    "import dlplay.twins; call = dlplay.twins",
    "import dlplay; dlplay.twins; import dlplay.twins; call = dlplay.twins",
    "from dlplay.twins import twins as call; import dlplay; assert dlplay.twins is call",
    "from dlplay import twins as call",
    "from dlplay.twins import Twins; import dlplay; call = dlplay.twins",
]


@pytest.mark.parametrize("order", ORDERS)
def test_twins_is_called_after_any_import(order: str) -> None:
    light = "'torch' not in __import__('sys').modules"
    code = f"{order}; assert callable(call) and call.Twins and {light}"
    subprocess.run([sys.executable, "-c", code], check=True)
