"""Networks of images, as users of PyTorch write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.corpus.pytorch.blocks import IMAGE, classes, composed, conv, network


@network(IMAGE)
def plain(t: Any) -> Any:
    pool = t.nn.MaxPool2d(2)
    return t.nn.Sequential(conv(t, 3, 8, stride=2), pool, conv(t, 8, 16), classes(t, 16))


@network(IMAGE, channels_last=True)
def channels_last(t: Any) -> Any:
    return plain(t)


@network(IMAGE)
def lenet(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 10),
        nn.Softmax(1),
    )  # fmt: skip


@network(IMAGE)
def residual(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        x = part[0](x)
        y = t.relu(part[3](x) + part[2](part[1](x)))
        return part[4](y.mean((2, 3)))

    parts = conv(t, 3, 8), conv(t, 8, 16, stride=2), t.nn.Conv2d(16, 16, 3, 1, 1)
    return composed(t, forward, *parts, t.nn.Conv2d(8, 16, 1, 2), t.nn.Linear(16, 5))


@network(IMAGE)
def inverted_residual(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        x = part[0](x)
        return part[4](x + part[3](part[2](part[1](x))))

    relu6 = t.nn.ReLU6
    deep = conv(t, 32, 32, groups=32, act=relu6), t.nn.Conv2d(32, 8, 1)
    parts = conv(t, 3, 8, stride=2, act=relu6), conv(t, 8, 32, 1, act=relu6)
    return composed(t, forward, *parts, *deep, classes(t, 8))


@network(IMAGE)
def squeezed_and_excited(t: Any) -> Any:
    nn = t.nn
    gate = nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 8, 1), nn.ReLU(), nn.Conv2d(8, 16, 1),
        nn.Hardsigmoid(),
    )  # fmt: skip

    def forward(part: Any, x: Any) -> Any:
        x = part[0](x)
        return part[3](part[2](x * part[1](x)))

    first = conv(t, 3, 16, stride=2, act=nn.Hardswish)
    return composed(t, forward, first, gate, conv(t, 16, 8, 1, act=nn.SiLU), classes(t, 8))


def _unet(t: Any, up: Callable[[Any, Any], Any], *more: Any, joined: int) -> Any:
    def forward(part: Any, x: Any) -> Any:
        fine = part[0](x)
        coarse = part[1](fine)
        return part[2](t.cat([fine, up(part, coarse)], 1))

    down = t.nn.Sequential(t.nn.MaxPool2d(2), conv(t, 8, 16))
    return composed(t, forward, conv(t, 3, 8), down, t.nn.Conv2d(joined, 2, 3, padding=1), *more)


@network(IMAGE)
def unet_transposed(t: Any) -> Any:
    return _unet(t, lambda part, x: part[3](x), t.nn.ConvTranspose2d(16, 8, 2, 2), joined=16)


@network(IMAGE)
def unet_nearest(t: Any) -> Any:
    return _unet(t, lambda _, x: t.nn.functional.interpolate(x, scale_factor=2), joined=24)


@network(IMAGE)
def unet_bilinear(t: Any) -> Any:
    def up(_: Any, x: Any) -> Any:
        return t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

    return _unet(t, up, joined=24)


@network(IMAGE)
def shuffle(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        a, b = part[0](x).chunk(2, 1)
        x = t.cat([a, part[1](b)], 1)
        n, c, h, w = x.shape
        return part[2](x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))

    branch = t.nn.Sequential(conv(t, 8, 8, 1), conv(t, 8, 8, groups=8), conv(t, 8, 8, 1))
    return composed(t, forward, conv(t, 3, 16, stride=2), branch, classes(t, 16))


@network(IMAGE)
def grouped(t: Any) -> Any:
    return t.nn.Sequential(conv(t, 3, 16, stride=2), conv(t, 16, 16, groups=4), classes(t, 16))


@network(IMAGE)
def inception(t: Any) -> Any:
    nn = t.nn

    def forward(part: Any, x: Any) -> Any:
        x = part[0](x)
        return part[4](t.cat([part[1](x), part[2](x), part[3](x)], 1))

    branches = conv(t, 8, 4, 1), nn.Sequential(conv(t, 8, 4, 1), conv(t, 4, 8))
    pooled = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(t, 8, 4, 1))
    end = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(576, 5))
    return composed(t, forward, conv(t, 3, 8, stride=2), *branches, pooled, end)


@network(IMAGE)
def densely_connected(t: Any) -> Any:
    """Twelve layers, each of which joins all before it, as torchvision's DenseNet does."""

    def forward(part: Any, x: Any) -> Any:
        made = [part[0](x)]
        for layer in list(part)[2:]:
            made.append(t.relu(layer(t.cat(made, 1))))
        return part[1](t.cat(made, 1))

    layers = [t.nn.Conv2d(4 + 2 * i, 2, 3, padding=1) for i in range(12)]
    return composed(t, forward, conv(t, 3, 4, stride=2), classes(t, 28), *layers)


@network(IMAGE)
def boxes_of_ssd(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        fine = part[0](x)
        coarse = part[1](fine)
        maps = part[2](fine), part[3](coarse)
        boxes = [m.permute(0, 2, 3, 1).reshape(1, -1, 4) for m in maps]
        return t.cat(boxes, 1), part[4](coarse).flatten(1).softmax(-1)

    heads = t.nn.Conv2d(8, 12, 1), t.nn.Conv2d(16, 12, 1), t.nn.Conv2d(16, 3, 1)
    return composed(t, forward, conv(t, 3, 8, stride=2), conv(t, 8, 16, stride=2), *heads)


@network(IMAGE)
def boxes_of_yolo(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        x = part[1](part[0](x))
        n, _, h, w = x.shape
        x = x.view(n, 3, 7, h * w).permute(0, 1, 3, 2).sigmoid()
        xy, wh, rest = x.split([2, 2, 3], -1)
        return t.cat([xy * 2 - 0.5, (wh * 2) ** 2, rest], -1).reshape(1, -1, 7)

    return composed(t, forward, conv(t, 3, 8, stride=4, act=t.nn.SiLU), t.nn.Conv2d(8, 21, 1))


@network(IMAGE)
def activations(t: Any) -> Any:
    nn, parts = t.nn, [t.nn.Conv2d(3, 8, 3, 2, 1), t.nn.PReLU(8)]
    for act in (nn.LeakyReLU(0.2), nn.ELU(), nn.GELU(), nn.Softplus(), nn.Mish(), nn.Hardtanh()):
        parts += [nn.Conv2d(8, 8, 1), act]
    return nn.Sequential(*parts)


@network(IMAGE)
def normalised(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 1),
        nn.InstanceNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1),
    )  # fmt: skip


@network(IMAGE)
def convnext(t: Any) -> Any:
    nn = t.nn

    def forward(part: Any, x: Any) -> Any:
        x = part[0](x)
        y = part[2](part[1](x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return part[3]((x + y).mean((2, 3)))

    inner = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))
    parts = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 7, padding=3, groups=8), inner
    return composed(t, forward, *parts, nn.Linear(8, 5))


@network(IMAGE)
def pooled(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.MaxPool2d(3, 2, 1),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.Conv2d(8, 8, 1),
        nn.AvgPool2d(2, ceil_mode=True), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4),
    )  # fmt: skip


@network(IMAGE)
def padded(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.ReplicationPad2d(1), nn.Conv2d(8, 8, 3, 2),
        nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(8, 4, 3, 2), nn.ConstantPad2d(1, 0.5),
        nn.Conv2d(4, 4, 3),
    )  # fmt: skip


@network(IMAGE)
def upscaled(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(conv(t, 3, 8), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))


@network(IMAGE)
def embedding_of_unit_length(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        return t.nn.functional.normalize(part[0](x).mean((2, 3)), dim=1)

    return composed(t, forward, conv(t, 3, 8, stride=2))


@network(IMAGE)
def labelled_pixels(t: Any) -> Any:
    def forward(part: Any, x: Any) -> Any:
        x = part[1](part[0](x))
        x = t.nn.functional.interpolate(x, size=(24, 24), mode="bilinear", align_corners=True)
        return x.argmax(1)

    dilated = t.nn.Conv2d(8, 4, 3, padding=2, dilation=2)
    return composed(t, forward, conv(t, 3, 8, stride=2), dilated)
