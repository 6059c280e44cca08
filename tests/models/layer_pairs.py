"""One layer in each framework, written so that the two compute the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers
from torch import nn

LINE, IMAGE, VOLUME = (12, 6), (9, 8, 6), (7, 5, 4, 6)
SEQUENCE = (7, 6)


@dataclass(frozen=True)
class LayerPair:
    """``shape`` is of one example, channels last; the numbers of classes of an embedding's ids."""

    name: str
    torch: Callable[[], nn.Module]
    keras: Callable[[], Any]
    shape: tuple[int, ...]
    ids: int = 0

    def example(self, seed: int = 0) -> np.ndarray:
        draw = np.random.default_rng(seed)
        if self.ids:
            return draw.integers(self.ids, size=(4, *self.shape))
        return draw.normal(size=(4, *self.shape))

    def models(self) -> tuple[nn.Module, keras.Model]:
        """Both in float32, with weights that are not where the frameworks start them."""
        keras.utils.set_random_seed(1)
        inputs = keras.Input(self.shape, dtype="int64" if self.ids else None)
        made = keras.Model(inputs, self.keras()(inputs))
        draw = np.random.default_rng(2)
        made.set_weights([np.abs(draw.normal(0.3, 0.3, w.shape)) for w in made.get_weights()])
        return nn.Sequential(self.torch()), made


def _sequential(*parts: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return call


class LastState(nn.Module):
    """The last state of a recurrent layer, both directions side by side."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        import torch

        state = self.layer(x)[1]
        hidden = state[0] if isinstance(state, tuple) else state
        return torch.cat(list(hidden[-2:] if self.layer.bidirectional else hidden[-1:]), dim=-1)


class Sequence(nn.Module):
    """The whole output of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0]


class SelfAttention(nn.Module):
    def __init__(self, *args: int, **kwargs: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(*args, **kwargs)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


def _self_attention(*args: int, **kwargs: Any) -> Callable[[Any], Any]:
    layer = layers.MultiHeadAttention(*args, **kwargs)
    return lambda x: layer(x, x)


CONVOLUTIONS = [
    LayerPair("dense", lambda: nn.Linear(6, 6), lambda: layers.Dense(6), (6,)),
    LayerPair("dense, no bias", lambda: nn.Linear(6, 5, bias=False),
              lambda: layers.Dense(5, use_bias=False), (6,)),
    LayerPair("dense on a sequence", lambda: nn.Linear(6, 5), lambda: layers.Dense(5), SEQUENCE),
    LayerPair("conv1d", lambda: nn.Conv1d(6, 4, 3, padding=1, dilation=1),
              lambda: layers.Conv1D(4, 3, padding="same"), LINE),
    LayerPair("conv1d, causal", lambda: nn.Sequential(nn.ConstantPad1d((4, 0), 0.0),
                                                      nn.Conv1d(6, 4, 3, dilation=2)),
              lambda: layers.Conv1D(4, 3, padding="causal", dilation_rate=2), LINE),
    LayerPair("conv2d", lambda: nn.Conv2d(6, 4, (3, 2)), lambda: layers.Conv2D(4, (3, 2)), IMAGE),
    LayerPair("conv2d, 'same' in both", lambda: nn.Conv2d(6, 4, 2, padding="same"),
              lambda: layers.Conv2D(4, 2, padding="same"), IMAGE),
    LayerPair("conv2d, groups", lambda: nn.Conv2d(6, 4, 3, groups=2),
              lambda: layers.Conv2D(4, 3, groups=2), IMAGE),
    LayerPair("conv2d, dilation", lambda: nn.Conv2d(6, 4, 3, dilation=2),
              lambda: layers.Conv2D(4, 3, dilation_rate=2), IMAGE),
    LayerPair("conv2d, strided and padded", lambda: nn.Conv2d(6, 4, 3, stride=2, padding=1),
              lambda: _sequential(layers.ZeroPadding2D(1), layers.Conv2D(4, 3, strides=2)), IMAGE),
    LayerPair("conv2d, padded at the end", lambda: nn.Sequential(nn.ZeroPad2d((0, 1, 1, 1)),
                                                                 nn.Conv2d(6, 4, 3, stride=2)),
              lambda: layers.Conv2D(4, 3, strides=2, padding="same"), IMAGE),
    LayerPair("conv3d", lambda: nn.Conv3d(6, 4, 2), lambda: layers.Conv3D(4, 2), VOLUME),
    LayerPair("depthwise", lambda: nn.Conv2d(6, 12, 3, groups=6),
              lambda: layers.DepthwiseConv2D(3, depth_multiplier=2), IMAGE),
    LayerPair("depthwise, one dimension", lambda: nn.Conv1d(6, 6, 3, groups=6),
              lambda: layers.DepthwiseConv1D(3), LINE),
    LayerPair("separable", lambda: nn.Sequential(nn.Conv2d(6, 6, 3, groups=6, bias=False),
                                                 nn.Conv2d(6, 4, 1)),
              lambda: layers.SeparableConv2D(4, 3), IMAGE),
    LayerPair("transposed", lambda: nn.ConvTranspose2d(6, 4, 3, stride=2),
              lambda: layers.Conv2DTranspose(4, 3, strides=2), IMAGE),
    LayerPair("transposed, 'same'", lambda: nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1),
              lambda: layers.Conv2DTranspose(4, 4, strides=2, padding="same"), IMAGE),
    LayerPair("transposed, one dimension", lambda: nn.ConvTranspose1d(6, 4, 3, stride=2),
              lambda: layers.Conv1DTranspose(4, 3, strides=2), LINE),
    LayerPair("transposed, three dimensions", lambda: nn.ConvTranspose3d(6, 4, 2, stride=2),
              lambda: layers.Conv3DTranspose(4, 2, strides=2), VOLUME),
]  # fmt: skip

NORMALIZATIONS = [
    LayerPair("batch norm", lambda: nn.BatchNorm2d(6),
              lambda: layers.BatchNormalization(epsilon=1e-5, momentum=0.9), IMAGE),
    LayerPair("batch norm of vectors", lambda: nn.BatchNorm1d(6),
              lambda: layers.BatchNormalization(epsilon=1e-5, momentum=0.9), (6,)),
    LayerPair("batch norm of lines", lambda: nn.BatchNorm1d(6),
              lambda: layers.BatchNormalization(epsilon=1e-5, momentum=0.9), LINE),
    LayerPair("batch norm, not affine", lambda: nn.BatchNorm2d(6, affine=False),
              lambda: layers.BatchNormalization(epsilon=1e-5, momentum=0.9, center=False,
                                                scale=False), IMAGE),
    LayerPair("layer norm", lambda: nn.LayerNorm(6),
              lambda: layers.LayerNormalization(epsilon=1e-5), SEQUENCE),
    LayerPair("group norm", lambda: nn.GroupNorm(3, 6),
              lambda: layers.GroupNormalization(3, epsilon=1e-5), IMAGE),
    LayerPair("instance norm", lambda: nn.InstanceNorm2d(6, affine=True),
              lambda: layers.GroupNormalization(-1, epsilon=1e-5), IMAGE),
    LayerPair("RMS norm", lambda: nn.RMSNorm(6, eps=1e-6),
              lambda: layers.RMSNormalization(epsilon=1e-6), SEQUENCE),
]  # fmt: skip

SEQUENCES = [
    LayerPair("embedding", lambda: nn.Embedding(9, 5), lambda: layers.Embedding(9, 5), (7,), 9),
    LayerPair("simple RNN", lambda: Sequence(nn.RNN(6, 5, batch_first=True)),
              lambda: layers.SimpleRNN(5, return_sequences=True), SEQUENCE),
    LayerPair("simple RNN, relu", lambda: Sequence(nn.RNN(6, 5, nonlinearity="relu",
                                                          batch_first=True)),
              lambda: layers.SimpleRNN(5, activation="relu", return_sequences=True), SEQUENCE),
    LayerPair("LSTM", lambda: Sequence(nn.LSTM(6, 5, batch_first=True)),
              lambda: layers.LSTM(5, return_sequences=True), SEQUENCE),
    LayerPair("LSTM, last state", lambda: LastState(nn.LSTM(6, 5, batch_first=True)),
              lambda: layers.LSTM(5), SEQUENCE),
    LayerPair("LSTM, both directions", lambda: Sequence(nn.LSTM(6, 5, batch_first=True,
                                                                bidirectional=True)),
              lambda: layers.Bidirectional(layers.LSTM(5, return_sequences=True)), SEQUENCE),
    LayerPair("LSTM, both directions, last states",
              lambda: LastState(nn.LSTM(6, 5, batch_first=True, bidirectional=True)),
              lambda: layers.Bidirectional(layers.LSTM(5)), SEQUENCE),
    LayerPair("LSTM, two stacked", lambda: LastState(nn.LSTM(6, 5, 2, batch_first=True)),
              lambda: _sequential(layers.LSTM(5, return_sequences=True), layers.LSTM(5)),
              SEQUENCE),
    LayerPair("GRU", lambda: Sequence(nn.GRU(6, 5, batch_first=True)),
              lambda: layers.GRU(5, return_sequences=True), SEQUENCE),
    LayerPair("GRU, two stacked, both directions",
              lambda: LastState(nn.GRU(6, 5, 2, batch_first=True, bidirectional=True)),
              lambda: _sequential(layers.Bidirectional(layers.GRU(5, return_sequences=True)),
                                  layers.Bidirectional(layers.GRU(5))), SEQUENCE),
    LayerPair("attention", lambda: SelfAttention(6, 2, batch_first=True),
              lambda: _self_attention(2, 3), SEQUENCE),
    LayerPair("attention, no bias", lambda: SelfAttention(6, 2, bias=False, batch_first=True),
              lambda: _self_attention(2, 3, use_bias=False), SEQUENCE),
]  # fmt: skip

POOLS = [
    LayerPair("max pool", lambda: nn.MaxPool2d(2), lambda: layers.MaxPooling2D(2), IMAGE),
    LayerPair("max pool of lines", lambda: nn.MaxPool1d(3, 2), lambda: layers.MaxPooling1D(3, 2),
              LINE),
    LayerPair("max pool, padded", lambda: nn.MaxPool2d(3, 1, padding=1),
              lambda: layers.MaxPooling2D(3, 1, padding="same"), IMAGE),
    LayerPair("max pool, rounded up", lambda: nn.MaxPool2d(2, ceil_mode=True),
              lambda: layers.MaxPooling2D(2, padding="same"), IMAGE),
    LayerPair("average pool, padded", lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
              lambda: layers.AveragePooling2D(3, 1, padding="same"), IMAGE),
    LayerPair("average pool of volumes", lambda: nn.AvgPool3d(2),
              lambda: layers.AveragePooling3D(2), VOLUME),
    LayerPair("global average pool", lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
              lambda: layers.GlobalAveragePooling2D(), IMAGE),
    LayerPair("global max pool", lambda: nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()),
              lambda: layers.GlobalMaxPooling2D(), IMAGE),
    LayerPair("upsampling, nearest", lambda: nn.Upsample(scale_factor=2),
              lambda: layers.UpSampling2D(2), IMAGE),
    LayerPair("upsampling, bilinear", lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
              lambda: layers.UpSampling2D(2, interpolation="bilinear"), IMAGE),
    LayerPair("padding", lambda: nn.ZeroPad2d((1, 2, 3, 4)),
              lambda: layers.ZeroPadding2D(((3, 4), (1, 2))), IMAGE),
    LayerPair("flatten", lambda: nn.Flatten(), lambda: layers.Flatten(), IMAGE),
    LayerPair("dropout", lambda: nn.Dropout(0.3), lambda: layers.Dropout(0.3), (6,)),
    LayerPair("spatial dropout", lambda: nn.Dropout2d(0.3), lambda: layers.SpatialDropout2D(0.3),
              IMAGE),
]  # fmt: skip

_VECTOR = (6,)
ACTIVATIONS = [
    *(
        LayerPair(name, made, lambda name=name: layers.Activation(name), _VECTOR)
        for name, made in {
            "relu": nn.ReLU, "relu6": nn.ReLU6, "elu": nn.ELU, "selu": nn.SELU, "celu": nn.CELU,
            "silu": nn.SiLU, "mish": nn.Mish, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid,
            "log_sigmoid": nn.LogSigmoid, "softplus": nn.Softplus, "softsign": nn.Softsign,
            "hard_sigmoid": nn.Hardsigmoid, "hard_silu": nn.Hardswish, "hard_tanh": nn.Hardtanh,
            "gelu": nn.GELU, "softmax": lambda: nn.Softmax(-1), "glu": nn.GLU,
            "log_softmax": lambda: nn.LogSoftmax(-1), "soft_shrink": nn.Softshrink,
            "hard_shrink": nn.Hardshrink, "tanh_shrink": nn.Tanhshrink,
        }.items()
    ),
    LayerPair("leaky relu", lambda: nn.LeakyReLU(0.2), lambda: layers.LeakyReLU(negative_slope=0.2),
              _VECTOR),
    LayerPair("relu layer", nn.ReLU, lambda: layers.ReLU(), _VECTOR),
    LayerPair("relu6 layer", nn.ReLU6, lambda: layers.ReLU(max_value=6.0), _VECTOR),
    LayerPair("prelu", lambda: nn.PReLU(6), lambda: layers.PReLU(shared_axes=[1, 2]), IMAGE),
    LayerPair("softmax layer", lambda: nn.Softmax(-1), lambda: layers.Softmax(), _VECTOR),
]  # fmt: skip

ALL = [*CONVOLUTIONS, *NORMALIZATIONS, *SEQUENCES, *POOLS, *ACTIVATIONS]
