"""Which releases of ESP-NN were read, and where their sizes of scratch differ.

    1.1.2, 1.2.0    the S3 copies filters and padded inputs
    1.2.1, 1.2.2    the S3 counts a second copy of the filter and one of the input
    1.2.3           P4 kernels of their own; larger margins on the S3
    1.2.6           the S3 pads convolutions once, by what their windows need on each side

1.2.4 and 1.2.5 were not read. Formulas change between patch releases, so a target names a release.
This module must not know operators.
"""

from __future__ import annotations

Release = tuple[int, int, int]

RELEASES: tuple[Release, ...] = ((1, 1, 2), (1, 2, 0), (1, 2, 1), (1, 2, 2), (1, 2, 3), (1, 2, 6))
"""Releases that were read, in order: tags v1.1.2 and v1.2.0 (component 1.2.0~1) of
espressif/esp-nn, and its commits 79d59ae, def4d7a, d45b843 and c087617."""
NEWEST = RELEASES[-1]
S3_COUNTS_ALIGNED_COPIES: Release = (1, 2, 1)
"""From this release on the S3's sizes include an aligned filter and padding right and below."""
WIDER_MARGIN: Release = (1, 2, 3)
P4_HAS_OWN_PATHS: Release = (1, 2, 3)
WIDER_S16_MARGIN: Release = (1, 2, 0)
ODD_DEPTHS_UNCOPIED: Release = (1, 2, 3)
"""From this release on the S3's 1x1 convolutions do not copy inputs whose channels do not fill
vectors."""
S3_PADS_BY_NEED: Release = (1, 2, 6)
"""From this release on, if not earlier, the S3 pads the image of a convolution on each side by what
its windows need there."""
FC_TAKES_ANY_ADDRESS: Release = (1, 2, 6)
"""From this release on the S3's FULLY_CONNECTED is right wherever its rows begin."""


def spell(release: Release) -> str:
    """ "1.2.3"."""
    return ".".join(map(str, release))
