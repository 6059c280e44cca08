"""The catalogue of known differences: one entry each, with how to reconcile it and where it says.

In ``in_torch`` and ``in_keras``, ``{name}`` is the layer, ``{torch}`` and ``{keras}`` the values:
the first makes PyTorch do as Keras does, the second Keras as PyTorch does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TORCH = "https://docs.pytorch.org/docs/stable/generated/torch.nn."
_KERAS = "https://keras.io/api/layers/"


@dataclass(frozen=True)
class Difference:
    """One known difference between the frameworks.

    Attributes
    ----------
    name : str
        As a sentence's subject.
    kinds : tuple of str
        Beginnings of the kinds of layers that it concerns.
    option : str
        The canonical option that differs.
    in_torch, in_keras : str
        Code that reconciles, in each framework.
    attributes : tuple of str
        PyTorch's and Keras's attribute, where the value can be set on a model in place.
    defaults : tuple of str
        PyTorch's and Keras's own.
    sources : tuple of str
        Pages of the frameworks' documentation.
    """

    name: str
    kinds: tuple[str, ...]
    option: str
    in_torch: str
    in_keras: str
    defaults: tuple[str, str] = ("", "")
    attributes: tuple[str, str] | None = None
    sources: tuple[str, ...] = ()

    def code(self, torch_name: str, keras_name: str, values: tuple[Any, Any]) -> Mapping[str, str]:
        """The code to change in either framework, with names and values filled in."""
        given = {"torch": values[0], "keras": values[1]}
        return {
            "pytorch": self.in_torch.format(name=torch_name, **given),
            "keras": self.in_keras.format(name=keras_name, **given),
        }


def find(kind: str, option: str) -> Difference:
    """The entry for an option of a kind of layer; a general one where there is none."""
    for difference in CATALOGUE:
        if option == difference.option and kind.startswith(difference.kinds):
            return difference
    return Difference(
        f"{kind}'s {option}",
        (kind,),
        option,
        f"in {{name}}: make {option} what Keras has, {{keras}}",
        f"in {{name}}: make {option} what PyTorch has, {{torch}}",
    )


def _epsilon(name: str, kind: str, torch: str, keras: str, defaults: tuple[str, str]) -> Difference:
    page = "normalization_layers/"
    return Difference(
        f"{name}'s epsilon",
        (kind,),
        "epsilon",
        "model.get_submodule({name!r}).eps = {keras}",
        f"{keras}(epsilon={{torch}})  # {{name}}",
        defaults,
        ("eps", "epsilon"),
        (f"{_TORCH}{torch}.html", f"{_KERAS}{page}"),
    )


CATALOGUE: tuple[Difference, ...] = (
    _epsilon("BatchNorm", "batch_norm", "BatchNorm2d", "BatchNormalization", ("1e-5", "1e-3")),
    _epsilon("LayerNorm", "layer_norm", "LayerNorm", "LayerNormalization", ("1e-5", "1e-3")),
    _epsilon("GroupNorm", "group_norm", "GroupNorm", "GroupNormalization", ("1e-5", "1e-3")),
    _epsilon("RMSNorm", "rms_norm", "RMSNorm", "RMSNormalization", ("1.19e-7", "1e-6")),
    Difference(
        "BatchNorm's momentum (here the weight of the old statistics, as in Keras)",
        ("batch_norm",),
        "momentum",
        "model.get_submodule({name!r}).momentum = 1 - {keras}",
        "BatchNormalization(momentum={torch})  # {name}",
        ("0.1, the weight of the new", "0.99, the weight of the old"),
        ("momentum", "momentum"),
        (f"{_TORCH}BatchNorm2d.html", f"{_KERAS}normalization_layers/batch_normalization/"),
    ),
    Difference(
        "BatchNorm's moving variance, which takes the batch's variance with or without Bessel's"
        " correction",
        ("batch_norm",),
        "moving_variance_of",
        "no argument does it for {name}: scale what running_var gains by (n - 1) / n",
        "no argument does it for {name}: scale what moving_variance gains by n / (n - 1)",
        ("unbiased", "biased"),
        None,
        (f"{_TORCH}BatchNorm2d.html", f"{_KERAS}normalization_layers/batch_normalization/"),
    ),
    Difference(
        "Padding: Keras's 'same' puts the odd element at the end, PyTorch's number on both sides",
        ("conv", "max_pool", "average_pool"),
        "padding",
        "torch.nn.functional.pad(x, ...) so that {name} pads (before, after) {keras}; padding=0",
        "ZeroPadding(padding={torch}) before {name}, which then has padding='valid'",
        ("the number given, on both sides", "'valid', or 'same' with the odd one at the end"),
        None,
        (f"{_TORCH}Conv2d.html", f"{_KERAS}convolution_layers/convolution2d/"),
    ),
    Difference(
        "What a transposed convolution cuts off its full output",
        ("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"),
        "crop",
        "ConvTranspose(padding=0) for {name}, then cut (before, after) {keras}",
        "Conv2DTranspose(padding='valid') for {name}, then Cropping2D({torch})",
        ("padding on both sides, output_padding at the end", "'valid' or 'same'"),
        None,
        (f"{_TORCH}ConvTranspose2d.html", f"{_KERAS}convolution_layers/convolution2d_transpose/"),
    ),
    Difference(
        "What max pooling pads with: PyTorch minus infinity, a ZeroPadding layer zeros",
        ("max_pool",),
        "pad_value",
        "torch.nn.functional.pad(x, ..., value={keras}) before {name}, with padding=0",
        "keras.ops.pad(x, ..., constant_values={torch}) before {name}, with padding='valid'",
        ("-inf", "-inf with padding='same'"),
        None,
        (f"{_TORCH}MaxPool2d.html", f"{_KERAS}pooling_layers/max_pooling2d/"),
    ),
    Difference(
        "Whether average pooling counts the padding",
        ("average_pool",),
        "count_padding",
        "model.get_submodule({name!r}).count_include_pad = {keras}",
        "no argument does it for {name}: ZeroPadding before it, and padding='valid'",
        ("True", "False"),
        None,
        (f"{_TORCH}AvgPool2d.html", f"{_KERAS}pooling_layers/average_pooling2d/"),
    ),
    Difference(
        "LeakyReLU's negative slope",
        ("leaky_relu",),
        "negative_slope",
        "model.get_submodule({name!r}).negative_slope = {keras}",
        "LeakyReLU(negative_slope={torch})  # {name}",
        ("0.01", "0.3 in the layer, 0.2 in the function"),
        ("negative_slope", "negative_slope"),
        (f"{_TORCH}LeakyReLU.html", f"{_KERAS}activation_layers/leaky_relu/"),
    ),
    Difference(
        "GELU's form: the error function, or its approximation by tanh",
        ("gelu",),
        "approximate",
        "nn.GELU(approximate='tanh' if {keras} else 'none')  # {name}",
        "keras.activations.gelu(x, approximate={torch})  # {name}",
        ("none (exact)", "False in activations.gelu, True in ops.gelu"),
        None,
        (f"{_TORCH}GELU.html", "https://keras.io/api/ops/nn/#gelu-function"),
    ),
    Difference(
        "When a GRU resets its state: before or after the product with the recurrent kernel",
        ("gru",),
        "reset_after",
        "PyTorch's GRU always resets after: {name} cannot be changed",
        "GRU(reset_after={torch})  # {name}",
        ("True, always", "True"),
        None,
        (f"{_TORCH}GRU.html", f"{_KERAS}recurrent_layers/gru/"),
    ),
    Difference(
        "How many biases are trained: PyTorch's two make their sum move twice as fast",
        ("lstm", "simple_rnn"),
        "biases",
        "freeze the second bias of {name}: bias_hh_l0.requires_grad_(False)",
        "no argument does it for {name}: Keras has one bias",
        ("2", "1"),
        None,
        (f"{_TORCH}LSTM.html", f"{_KERAS}recurrent_layers/lstm/"),
    ),
    Difference(
        "What padding_idx and mask_zero do: PyTorch keeps the row at zero and gives it no"
        " gradient, Keras sends a mask on",
        ("embedding",),
        "padding_index",
        "Embedding(padding_idx={keras})  # {name}",
        "Embedding(mask_zero={torch} is not None)  # {name}; zero row 0 and its gradient by hand",
        ("None", "mask_zero=False"),
        None,
        (f"{_TORCH}Embedding.html", f"{_KERAS}core_layers/embedding/"),
    ),
    Difference(
        "Upsampling's interpolation",
        ("upsample",),
        "align_corners",
        "nn.Upsample(align_corners={keras})  # {name}",
        "Keras's UpSampling2D never aligns corners: {name} cannot be changed",
        ("False", "False, always"),
        None,
        (f"{_TORCH}Upsample.html", f"{_KERAS}reshaping_layers/up_sampling2d/"),
    ),
    Difference(
        "Dropout's rate",
        ("dropout", "spatial_dropout", "alpha_dropout"),
        "rate",
        "model.get_submodule({name!r}).p = {keras}",
        "Dropout({torch})  # {name}",
        ("0.5", "no default"),
        ("p", "rate"),
        (f"{_TORCH}Dropout.html", f"{_KERAS}regularization_layers/dropout/"),
    ),
)
