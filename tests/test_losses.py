"""Every loss: both wings agree in value and gradient, where stock forms part as measured."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
import torch
from torch import nn
from torch.nn import functional as F

from dlplay.errors import ModelError
from dlplay.frameworks import load_wing
from dlplay.settings import Loss

#: float64 rounding: values and gradients were at most 4e-16 apart, relative.
EXACT = 1e-13

_DRAW = np.random.default_rng(3)
LOGITS = 3 * _DRAW.normal(size=(6, 4))
LABELS = np.array([0, 1, 2, 3, 1, 1])
ONE_HOT = np.eye(4)[LABELS]
SHARES = _DRAW.dirichlet(np.ones(4), size=6)
OTHER_SHARES = _DRAW.dirichlet(np.ones(4), size=6)
REAL, TARGET = _DRAW.normal(size=(6, 4)), _DRAW.normal(size=(6, 4))
BITS = (_DRAW.random((6, 4)) > 0.5).astype(float)
RATES, COUNTS = _DRAW.random((6, 4)) + 0.1, _DRAW.integers(0, 5, (6, 4)).astype(float)
CLASS_WEIGHTS = np.array([1.0, 5.0, 0.5, 2.0])
IGNORING = np.array([0, 1, -100, 3, -100, 1])
SEQUENCE, TAGS = _DRAW.normal(size=(2, 3, 4)), np.array([[0, 1, 2], [3, 3, 0]])

#: Function, predictions, targets, options.
CASES: dict[str, tuple[str, np.ndarray, np.ndarray, dict[str, Any]]] = {
    "labels": ("cross_entropy", LOGITS, LABELS, {}),
    "one-hot": ("cross_entropy", LOGITS, ONE_HOT, {}),
    "shares": ("cross_entropy", LOGITS, SHARES, {}),
    "smoothing": ("cross_entropy", LOGITS, LABELS, {"smoothing": 0.1}),
    "smoothing one-hot": ("cross_entropy", LOGITS, ONE_HOT, {"smoothing": 0.1}),
    "confident and wrong": ("cross_entropy", 20 * LOGITS, LABELS, {}),
    "class weights": ("cross_entropy", LOGITS, LABELS, {"class_weights": CLASS_WEIGHTS}),
    "ignored": ("cross_entropy", LOGITS, IGNORING, {"ignored": -100}),
    "ignored, smoothing": ("cross_entropy", LOGITS, IGNORING, {"ignored": -100, "smoothing": 0.2}),
    "sequence": ("cross_entropy", SEQUENCE, TAGS, {}),
    "sequence, weights": ("cross_entropy", SEQUENCE, TAGS, {"class_weights": CLASS_WEIGHTS}),
    "binary": ("binary_cross_entropy", LOGITS, BITS, {}),
    "binary, saturated": ("binary_cross_entropy", 20 * LOGITS, BITS, {}),
    "binary, smoothing": ("binary_cross_entropy", LOGITS, BITS, {"smoothing": 0.1}),
    "binary, positive weight": ("binary_cross_entropy", LOGITS, BITS, {"positive_weight": 3.0}),
    "squared": ("mean_squared_error", REAL, TARGET, {}),
    "absolute": ("mean_absolute_error", REAL, TARGET, {}),
    "huber": ("huber", REAL, TARGET, {"delta": 0.7}),
    "smooth l1": ("smooth_l1", REAL, TARGET, {"beta": 2.0}),
    "kl": ("kl_divergence", SHARES, OTHER_SHARES, {}),
    "poisson": ("poisson", RATES, COUNTS, {}),
    "hinge": ("hinge", REAL, 2 * BITS - 1, {}),
    "cosine": ("cosine_similarity", REAL, TARGET, {}),
}


def value_and_gradient(wing: str, case: str, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    name, predictions, targets, options = CASES[case]
    function = getattr(load_wing(wing).losses, name)
    tensor = {"pytorch": torch.tensor, "keras": tf.constant}[wing]
    options = {k: tensor(v) if k == "class_weights" else v for k, v in options.items()} | more
    if wing == "pytorch":
        x = torch.tensor(predictions, requires_grad=True)
        loss = function(x, torch.tensor(targets), **options)
        loss.sum().backward()
        return loss.detach().numpy(), x.grad.numpy()
    x = tf.constant(predictions)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = function(x, tf.constant(targets), **options)
    return loss.numpy(), tape.gradient(loss, x).numpy()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES)
def test_both_wings_agree(case: str, reduction: str) -> None:
    runs = [value_and_gradient(wing, case, reduction=reduction) for wing in tiny.WINGS]
    for ours, theirs in zip(*runs, strict=True):
        assert ours.shape == theirs.shape
        assert np.max(np.abs(ours - theirs)) <= EXACT * max(1.0, np.max(np.abs(theirs)))


@pytest.mark.parametrize("case", ["class weights", "ignored", "sequence, weights"])
def test_means_by_weight_agree(case: str) -> None:
    runs = [value_and_gradient(wing, case, reduction="weighted_mean") for wing in tiny.WINGS]
    for ours, theirs in zip(*runs, strict=True):
        assert np.max(np.abs(ours - theirs)) <= EXACT


def ours(case: str, **more: Any) -> float:
    return float(value_and_gradient("pytorch", case, **more)[0])


def t(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array)


def kl(reduction: str) -> float:
    log = torch.log(t(SHARES))
    return F.kl_div(log, t(OTHER_SHARES), reduction=reduction).item()


def kept(make: Any, labels: np.ndarray, predictions: np.ndarray, **more: Any) -> float:
    """A loss class of Keras's, kept in float64 (it casts to ``floatx`` otherwise)."""
    return float(make(dtype="float64")(labels, predictions, **more))


K = keras.losses


def probabilities(logits: np.ndarray) -> np.ndarray:
    """By TensorFlow's softmax, which does not remember its logits as Keras's activation does."""
    return tf.nn.softmax(logits).numpy()


WEIGHED = CLASS_WEIGHTS[LABELS]

#: Stock PyTorch, stock Keras, what both wings say; the relative difference of the first two, to
#: within a factor of 3: 0.0 where they agree.
STOCK: dict[str, tuple[Callable[[], float], Callable[[], float], Callable[[], float], float]] = {
    "logits taken for probabilities": (
        lambda: F.cross_entropy(t(LOGITS), t(LABELS)).item(),
        lambda: kept(K.SparseCategoricalCrossentropy, LABELS, LOGITS),
        lambda: ours("labels"),
        0.5,
    ),
    "label smoothing": (
        lambda: F.cross_entropy(t(LOGITS), t(LABELS), label_smoothing=0.1).item(),
        lambda: float(
            K.CategoricalCrossentropy(True, label_smoothing=0.1, dtype="float64")(ONE_HOT, LOGITS)
        ),
        lambda: ours("smoothing"),
        0.0,
    ),
    "probabilities are clipped at 1e-7": (
        lambda: F.cross_entropy(t(20 * LOGITS), t(LABELS)).item(),
        lambda: kept(K.SparseCategoricalCrossentropy, LABELS, probabilities(20 * LOGITS)),
        lambda: ours("confident and wrong"),
        0.6,
    ),
    "class weights": (
        lambda: F.cross_entropy(t(LOGITS), t(LABELS), weight=t(CLASS_WEIGHTS)).item(),
        lambda: float(
            K.SparseCategoricalCrossentropy(True, dtype="float64")(
                LABELS, LOGITS, sample_weight=WEIGHED
            )
        ),
        lambda: ours("class weights", reduction="weighted_mean"),
        0.6,
    ),
    "class weights, mean_with_sample_weight": (
        lambda: F.cross_entropy(t(LOGITS), t(LABELS), weight=t(CLASS_WEIGHTS)).item(),
        lambda: float(
            K.SparseCategoricalCrossentropy(
                True, reduction="mean_with_sample_weight", dtype="float64"
            )(LABELS, LOGITS, sample_weight=WEIGHED)
        ),
        lambda: ours("class weights", reduction="weighted_mean"),
        0.0,
    ),
    "ignored label": (
        lambda: F.cross_entropy(t(LOGITS), t(IGNORING)).item(),
        lambda: float(
            K.SparseCategoricalCrossentropy(True, ignore_class=-100, dtype="float64")(
                IGNORING, LOGITS
            )
        ),
        lambda: ours("ignored"),
        0.0,
    ),
    "binary": (
        lambda: F.binary_cross_entropy_with_logits(t(LOGITS), t(BITS)).item(),
        lambda: float(K.BinaryCrossentropy(True, dtype="float64")(BITS, LOGITS)),
        lambda: ours("binary"),
        0.0,
    ),
    "saturated sigmoids": (
        lambda: F.binary_cross_entropy_with_logits(t(20 * LOGITS), t(BITS)).item(),
        lambda: kept(K.BinaryCrossentropy, BITS, tf.sigmoid(20 * LOGITS).numpy()),
        lambda: ours("binary, saturated"),
        0.5,
    ),
    "positive weight": (
        lambda: F.binary_cross_entropy_with_logits(
            t(LOGITS), t(BITS), pos_weight=torch.tensor(3.0, dtype=torch.float64)
        ).item(),
        lambda: float(K.BinaryCrossentropy(True, dtype="float64")(BITS, LOGITS)),
        lambda: ours("binary, positive weight"),
        1.0,
    ),
    "squared": (
        lambda: F.mse_loss(t(REAL), t(TARGET)).item(),
        lambda: kept(K.MeanSquaredError, TARGET, REAL),
        lambda: ours("squared"),
        0.0,
    ),
    "absolute": (
        lambda: F.l1_loss(t(REAL), t(TARGET)).item(),
        lambda: kept(K.MeanAbsoluteError, TARGET, REAL),
        lambda: ours("absolute"),
        0.0,
    ),
    "huber": (
        lambda: F.huber_loss(t(REAL), t(TARGET), delta=0.7).item(),
        lambda: float(K.Huber(0.7, dtype="float64")(TARGET, REAL)),
        lambda: ours("huber"),
        0.0,
    ),
    "smooth l1 is Huber over beta": (
        lambda: F.smooth_l1_loss(t(REAL), t(TARGET), beta=2.0).item(),
        lambda: float(K.Huber(2.0, dtype="float64")(TARGET, REAL)),
        lambda: ours("smooth l1"),
        0.5,
    ),
    "kl, mean over all": (
        lambda: kl("mean"),
        lambda: kept(K.KLDivergence, OTHER_SHARES, SHARES),
        lambda: ours("kl") / 4,
        0.75,
    ),
    "kl, batchmean": (
        lambda: kl("batchmean"),
        lambda: kept(K.KLDivergence, OTHER_SHARES, SHARES),
        lambda: ours("kl"),
        0.0,
    ),
    "poisson takes rates": (
        lambda: F.poisson_nll_loss(t(RATES), t(COUNTS), log_input=False, eps=1e-7).item(),
        lambda: kept(K.Poisson, COUNTS, RATES),
        lambda: ours("poisson"),
        0.0,
    ),
    "poisson takes logarithms by default": (
        lambda: F.poisson_nll_loss(t(np.log(RATES)), t(COUNTS)).item(),
        lambda: kept(K.Poisson, COUNTS, np.log(RATES + 10)),
        lambda: ours("poisson"),
        0.8,
    ),
    "hinge": (
        lambda: F.relu(1 - t(REAL * (2 * BITS - 1))).mean().item(),
        lambda: kept(K.Hinge, 2 * BITS - 1, REAL),
        lambda: ours("hinge"),
        0.0,
    ),
    "cosine": (
        lambda: F.cosine_embedding_loss(t(REAL), t(TARGET), torch.ones(6)).item() - 1,
        lambda: kept(K.CosineSimilarity, TARGET, REAL),
        lambda: ours("cosine"),
        0.0,
    ),
    "classes are dimension 1 of a sequence": (
        lambda: F.cross_entropy(t(SEQUENCE).transpose(1, 2), t(TAGS)).item(),
        lambda: float(K.SparseCategoricalCrossentropy(True, dtype="float64")(TAGS, SEQUENCE)),
        lambda: ours("sequence"),
        0.0,
    ),
    "a column against a row": (
        lambda: F.mse_loss(t(REAL[:, :1]), t(TARGET[:, 0])).item(),
        lambda: kept(K.MeanSquaredError, TARGET[:, 0], REAL[:, :1]),
        lambda: F.mse_loss(t(REAL[:, :1]), t(TARGET[:, 0])).item(),
        0.016,
    ),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("case", STOCK)
def test_stock_losses_part_or_agree_as_measured(case: str) -> None:
    """Where they agree, 1e-6 is Keras's clipping and its ``epsilon`` of 1e-7, else rounding."""
    pytorch, kera, both, size = (f() if callable(f) else f for f in STOCK[case])
    apart = abs(pytorch - kera) / max(abs(pytorch), abs(kera))
    assert size / 3 <= apart <= min(3 * size, 1.01) if size else apart <= 1e-6
    assert both == pytest.approx(pytorch, rel=1e-6)  # the wings' own forms hold the same epsilon


def test_keras_remembers_the_logits_of_its_own_softmax() -> None:
    """Softmax as the very last operation is not clipped; one operation later it is."""
    loss = K.SparseCategoricalCrossentropy(dtype="float64")
    softmax = keras.activations.softmax(tf.constant(20 * LOGITS))
    exact = ours("confident and wrong")
    assert float(loss(LABELS, softmax)) == pytest.approx(exact, rel=1e-12)
    assert float(loss(LABELS, softmax * 1.0)) < exact / 2


def test_masked_positions_do_not_count_in_either() -> None:
    """An implicit mask of Keras's is boolean indexing in PyTorch."""
    mask = np.array([[1, 1, 0], [1, 0, 0]], dtype=bool)
    predictions = tf.constant(SEQUENCE)
    keras.src.backend.set_keras_mask(predictions, tf.constant(mask))
    loss = K.SparseCategoricalCrossentropy(True, dtype="float64")
    masked = F.cross_entropy(t(SEQUENCE[mask]), t(TAGS[mask])).item()
    assert float(loss(TAGS, predictions)) == pytest.approx(masked, rel=1e-12)
    assert abs(ours("sequence") - masked) > 1e-3
    ignoring = np.where(mask, TAGS, -1)
    for wing, tensor in (("pytorch", torch.tensor), ("keras", tf.constant)):
        function = load_wing(wing).losses.cross_entropy
        found = float(function(tensor(SEQUENCE), tensor(ignoring), ignored=-1))
        assert found == pytest.approx(masked, rel=1e-12)


@pytest.mark.parametrize("wing", tiny.WINGS)
@pytest.mark.parametrize("name", Loss.rule("name").options)
def test_made_from_settings(wing: str, name: str) -> None:
    settings = Loss(name, smoothing=0.1, delta=0.7)
    tensor = {"pytorch": torch.tensor, "keras": tf.constant}[wing]
    made = load_wing(wing).losses.make(settings)
    options = {"smoothing": 0.1} if "entropy" in name else {}
    options |= {"huber": {"delta": 0.7}, "smooth_l1": {"beta": 0.7}}.get(name, {})
    direct = getattr(load_wing(wing).losses, name)
    pair = tensor(SHARES), tensor(OTHER_SHARES)
    assert float(made(*pair)) == float(direct(*pair, **options))


@pytest.mark.parametrize("wing", tiny.WINGS)
def test_wrong_shapes_and_reductions_get_one_sentence(wing: str) -> None:
    losses = load_wing(wing).losses
    tensor = {"pytorch": torch.tensor, "keras": tf.constant}[wing]
    with pytest.raises(ModelError, match=r"have the shapes \(6, 1\) and \(6,\): give both"):
        losses.mean_squared_error(tensor(REAL[:, :1]), tensor(TARGET[:, 0]))
    with pytest.raises(ModelError, match="There is no reduction 'average' here"):
        losses.mean_squared_error(tensor(REAL), tensor(TARGET), "average")
    with pytest.raises(ModelError, match="There is no reduction 'weighted_mean' here"):
        losses.huber(tensor(REAL), tensor(TARGET), reduction="weighted_mean")


@pytest.mark.parametrize("wing", tiny.WINGS)
@pytest.mark.parametrize("label", [4, -1, -100])
def test_a_label_out_of_range_is_an_error(wing: str, label: int) -> None:
    tensor = {"pytorch": torch.tensor, "keras": tf.constant}[wing]
    labels = np.where(LABELS == 3, label, LABELS)
    with pytest.raises((IndexError, tf.errors.InvalidArgumentError)):
        load_wing(wing).losses.cross_entropy(tensor(LOGITS), tensor(labels))


# Regularizers.


def _keras_regularized(**options: float) -> keras.Model:
    regularizer = keras.regularizers.L1L2(**options)
    model = tiny.keras_model()
    for layer in model.layers:
        layer.kernel.regularizer = regularizer
    return model


@pytest.mark.parametrize("options", [{"l1": 0.25}, {"l2": 0.125}, {"l1": 0.5, "l2": 0.25}])
def test_penalty_is_keras_regularizers(options: dict[str, float]) -> None:
    pytorch = load_wing("pytorch").regularizers.penalty(tiny.torch_model(), **options).item()
    kera = float(load_wing("keras").regularizers.penalty(tiny.keras_model(), **options))
    stock = float(sum(_keras_regularized(**options).losses))
    assert pytorch == pytest.approx(kera, rel=EXACT)
    assert pytorch == pytest.approx(stock, rel=EXACT)  # numbers that float32 holds exactly


def test_stock_regularizers_round_their_number() -> None:
    """0.1 goes through float32: 1.5e-8, relative."""
    stock = float(sum(_keras_regularized(l2=0.1).losses))
    exact = load_wing("pytorch").regularizers.penalty(tiny.torch_model(), l2=0.1).item()
    assert 1e-9 < abs(stock / exact - 1) < 1e-7


@pytest.fixture
def floatx64() -> Iterator[None]:
    """A compiled loss has the type ``floatx``, and does not add up with a float64 penalty."""
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(before)


@pytest.mark.usefixtures("floatx64")
def test_weight_decay_is_twice_l2_and_does_not_show_in_the_loss() -> None:
    decay = 0.25
    model = tiny.torch_model()
    load_wing("pytorch").regularizers.penalty(model, l2=decay / 2).backward()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            assert torch.allclose(parameter.grad, decay * parameter, rtol=EXACT, atol=0)
    regularized = _keras_regularized(l2=decay / 2)
    regularized.compile("sgd", "mse")
    shown = regularized.evaluate(tiny.X[0], tiny.Y[0], verbose=0)
    plain = F.mse_loss(tiny.torch_model()(t(tiny.X[0])), t(tiny.Y[0])).item()
    extra = float(sum(regularized.losses))
    assert extra > 0.1
    assert shown - extra == pytest.approx(plain, rel=EXACT)


def test_activity_regularizer_divides_by_the_batch() -> None:
    layer = keras.layers.ActivityRegularization(l2=0.5, dtype="float64")
    layer(tf.constant(REAL))
    assert float(sum(layer.losses)) == pytest.approx(0.5 * np.sum(REAL**2) / len(REAL), rel=EXACT)


def test_constraints_act_after_the_update() -> None:
    """PyTorch has none: clamp by hand behind ``step``."""
    start, gradient = np.array([0.5, -0.5]), np.array([1.0, 0.25])
    variable = keras.Variable(start, dtype="float64")
    variable.constraint = keras.constraints.NonNeg()
    keras.optimizers.SGD(1.0).apply([tf.constant(gradient)], [variable])
    weight = nn.Parameter(t(start))
    weight.grad = t(gradient)
    torch.optim.SGD([weight], 1.0).step()
    with torch.no_grad():
        weight.clamp_(min=0)
    assert np.array_equal(variable.numpy(), weight.detach().numpy())
