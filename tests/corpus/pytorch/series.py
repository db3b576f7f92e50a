"""Networks of series and words, as users of PyTorch write them, and some without either."""

from __future__ import annotations

from typing import Any

from tests.corpus.pytorch.blocks import IMAGE, SERIES, SIGNAL, composed, conv, network


@network((1, 1, 49, 10))
def keywords(t: Any) -> Any:
    nn = t.nn
    blocks = [conv(t, 16, 16, groups=16), conv(t, 16, 16, 1)] * 2
    first = nn.Conv2d(1, 16, (10, 4), 2, (5, 1))
    end = nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(16, 12)
    return nn.Sequential(first, nn.BatchNorm2d(16), nn.ReLU(), *blocks, *end)


@network(SIGNAL)
def signal(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv1d(6, 16, 5, 2, 2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        nn.Linear(16, 4),
    )  # fmt: skip


@network(SIGNAL)
def causal(t: Any) -> Any:
    pad = t.nn.functional.pad

    def forward(part: Any, x: Any) -> Any:
        y = part[0](pad(x, (4, 0)))
        return part[2]((t.relu(part[1](pad(t.relu(y), (8, 0)))) + y).mean(-1))

    layers = t.nn.Conv1d(6, 12, 3, dilation=2), t.nn.Conv1d(12, 12, 3, dilation=4)
    return composed(t, forward, *layers, t.nn.Linear(12, 4))


def _recurrent(t: Any, cell: Any, channels: int) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return part[1](part[0](x)[0][:, -1])

    return composed(t, forward, cell, t.nn.Linear(channels, 4))


@network(SERIES)
def lstm(t: Any) -> Any:
    return _recurrent(t, t.nn.LSTM(8, 12, batch_first=True), 12)


@network(SERIES)
def gru(t: Any) -> Any:
    return _recurrent(t, t.nn.GRU(8, 12, batch_first=True), 12)


@network((1, 12), words=20)
def words_on_average(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return part[1](part[0](x).mean(1))

    return composed(t, forward, t.nn.Embedding(20, 8), t.nn.Linear(8, 3))


@network((1, 12), words=20)
def words_convolved(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return part[2](t.relu(part[1](part[0](x).transpose(1, 2))).amax(-1))

    return composed(t, forward, t.nn.Embedding(20, 8), t.nn.Conv1d(8, 12, 3), t.nn.Linear(12, 3))


@network((1, 16, 16))
def encoder(t: Any) -> Any:
    layer = t.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    return t.nn.Sequential(layer, t.nn.Linear(16, 4))


@network((1, 16, 16))
def attention(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        q, k, v = part[0](x).view(1, 16, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = t.nn.functional.scaled_dot_product_attention(q, k, v)
        return part[1](mixed.transpose(1, 2).reshape(1, 16, 16))

    return composed(t, forward, t.nn.Linear(16, 48), t.nn.Linear(16, 4))


@network(IMAGE)
def vision_transformer(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return part[2](part[1](part[0](x).flatten(2).transpose(1, 2) + 0.1).mean(1))

    gelu, patches = t.nn.functional.gelu, t.nn.Conv2d(3, 16, 6, 6)
    layer = t.nn.TransformerEncoderLayer(16, 2, 32, 0.0, gelu, batch_first=True, norm_first=True)
    return composed(t, forward, patches, layer, t.nn.Linear(16, 4))


@network((1, 640))
def anomalies(t: Any) -> Any:
    nn, parts = t.nn, list[Any]()
    for before, after in ((640, 32), (32, 8), (8, 32)):
        parts += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(32, 640))


@network((1, 8))
def perceptron(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.LeakyReLU(0.1), nn.Linear(16, 3),
        nn.LogSoftmax(-1),
    )  # fmt: skip


@network((1, 3, 16))
def statistics(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return part[0](t.cat([x.mean(-1), x.std(-1), x.amax(-1), x.amin(-1)], 1))

    return composed(t, forward, t.nn.Linear(12, 4))
