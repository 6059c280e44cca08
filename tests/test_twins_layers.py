"""Every kind of layer goes from one framework into the other and computes the same there."""

import numpy as np
import pytest
from models.layer_pairs import ALL, LayerPair

import dlplay
from dlplay.twins.measures import in_order
from dlplay.twins.reference import compute

#: Rounding of one layer in float32; the largest measured here is 9e-7 (GRU, both directions).
ROUNDING = 5e-6

#: Kinds whose channels PyTorch puts first, also in (batch, channels, length).
CHANNELS_FIRST = ("conv", "max_pool", "average_pool", "global", "pad", "prelu")
CHANNELS_FIRST += ("batch_norm", "group_norm")

pairs = pytest.mark.parametrize("pair", ALL, ids=lambda pair: pair.name)


@pairs
def test_weights_go_over_and_outputs_agree(pair: LayerPair) -> None:
    torch_model, keras_model = pair.models()
    twins = dlplay.twins(torch_model, keras_model, pair.example())
    twins.copy_weights(source="keras")
    comparison = twins.compare(pair.example(seed=5))
    assert comparison.output.relative < ROUNDING, str(comparison)
    assert all(gap.relative == 0 for row in comparison.layers for gap in row.weights.values())


@pairs
def test_weights_come_back_as_they_were(pair: LayerPair) -> None:
    torch_model, keras_model = pair.models()
    before = keras_model.get_weights()
    twins = dlplay.twins(torch_model, keras_model, pair.example())
    twins.copy_weights(source="keras")
    keras_model.set_weights([np.zeros_like(array) for array in before])
    twins.copy_weights(source="pytorch")
    for one, two in zip(keras_model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, two)


@pairs
def test_layers_correspond_and_their_options_agree(pair: LayerPair) -> None:
    twins = dlplay.twins(*pair.models(), pair.example())
    found = [pair for pair in twins.alignment if pair.both]
    assert found
    inherent = {"moving_variance_of", "biases"}  # no argument makes these the same
    assert [key for p in found for key in p.differing() if key not in inherent] == []


#: Some layers hold several parts, of which only the last or its last state comes out; and some
#: kinds have no reference. The whole of each is compared above.
SEVERAL = ("stacked", "both directions", "last", "separable")
NO_REFERENCE = ("attention", "upsampling", "flatten")
SINGLE = [p for p in ALL if not any(word in p.name for word in (*SEVERAL, *NO_REFERENCE))]


@pytest.mark.parametrize("pair", SINGLE, ids=lambda pair: pair.name)
@pytest.mark.parametrize("wing", ["pytorch", "keras"])
def test_the_canonical_form_says_all_that_a_layer_computes(pair: LayerPair, wing: str) -> None:
    twins = dlplay.twins(*pair.models(), pair.example())
    room, model = twins.wings[wing], twins.models[wing]
    inputs = room.structure.as_inputs(model, (pair.example(),))
    compared: set[str] = set()
    for visit in room.tracing.follow(model, inputs, keep=True).visits:
        if visit.output is None or visit.input is None:
            continue
        x = in_order(visit.input, visit.input_order)
        first = wing == "pytorch" and x.ndim > 2 and visit.kind.startswith(CHANNELS_FIRST)
        made = compute(
            visit.kind, visit.options, visit.arrays, np.moveaxis(x, 1, -1) if first else x
        )
        if made is not None and made.size == visit.output.size:
            made = np.moveaxis(made, -1, 1) if first and made.ndim > 2 else made
            made = made.reshape(visit.output.shape)
            np.testing.assert_allclose(made, visit.output, rtol=0, atol=5e-5)
            compared.add(visit.kind)
    assert compared
